-- What became of cases that were drafted from incidents and traces.

alter table case_drafts alter column fingerprint drop not null;
comment on column case_drafts.fingerprint is 'The incident that it was part of. Null for a draft of a trace or of a review.';

create table draft_outcomes (
  draft_id varchar primary key,
  decided_at timestamptz not null,
  done_by varchar not null,
  joined boolean not null,
  case_id varchar,
  suite varchar not null,
  note varchar not null,
  record json not null,
  segment_id varchar not null
);
comment on table draft_outcomes is 'What a person made of a drafted case. A draft without an outcome waits.';
comment on column draft_outcomes.draft_id is 'The draft.';
comment on column draft_outcomes.decided_at is 'When (UTC).';
comment on column draft_outcomes.done_by is 'Who decided.';
comment on column draft_outcomes.joined is 'Whether it became gold.';
comment on column draft_outcomes.case_id is 'The gold case that it became. Null where it was not wanted.';
comment on column draft_outcomes.suite is 'The suite that the case joined.';
comment on column draft_outcomes.note is 'What the person said.';
comment on column draft_outcomes.record is 'The whole outcome as JSON.';
comment on column draft_outcomes.segment_id is 'The segment it came from.';
