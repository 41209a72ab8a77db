-- What people do about incidents: clicks and commands, what came of them, labels, drafted cases, silences.

create table actions (
  id varchar primary key,
  kind varchar not null,
  done_at timestamptz not null,
  done_by varchar not null,
  via varchar not null,
  alert_id varchar,
  fingerprints varchar[] not null,
  note varchar not null,
  record json not null,
  segment_id varchar not null
);
comment on table actions is 'What people did about incidents. A click that was delivered twice is here once.';
comment on column actions.id is 'The same for the same click.';
comment on column actions.kind is 'acknowledge, false_alarm, add_to_gold or resolve.';
comment on column actions.done_at is 'When it was done (UTC).';
comment on column actions.done_by is 'Who: a Slack user id, or the name given to the command.';
comment on column actions.via is 'slack or command.';
comment on column actions.alert_id is 'The message that it was done on.';
comment on column actions.fingerprints is 'The incidents that it is about; none means all of the message.';
comment on column actions.note is 'What the person said about it.';
comment on column actions.record is 'The whole action as JSON.';
comment on column actions.segment_id is 'The segment it came from.';

create table action_outcomes (
  action_id varchar primary key,
  carried_out_at timestamptz not null,
  effect varchar not null,
  fingerprints varchar[] not null,
  text varchar not null,
  segment_id varchar not null
);
comment on table action_outcomes is 'What came of each action, decided once. An action without one is still to be carried out.';
comment on column action_outcomes.action_id is 'The action.';
comment on column action_outcomes.carried_out_at is 'When it was carried out (UTC).';
comment on column action_outcomes.effect is 'done, nothing_to_do (it was so already) or unknown (nothing here is meant).';
comment on column action_outcomes.fingerprints is 'The incidents that it was about.';
comment on column action_outcomes.text is 'What came of it in words.';
comment on column action_outcomes.segment_id is 'The segment it came from.';

create table labels (
  id varchar primary key,
  given_at timestamptz not null,
  done_by varchar not null,
  target varchar not null,
  run_id varchar not null,
  case_id varchar,
  failure_kind varchar,
  fingerprint varchar,
  finding_right boolean not null,
  reason varchar not null,
  note varchar not null,
  segment_id varchar not null
);
comment on table labels is 'People''s verdicts on findings: what judges and graders are measured against.';
comment on column labels.id is 'The label.';
comment on column labels.given_at is 'When it was given (UTC).';
comment on column labels.done_by is 'Who gave it.';
comment on column labels.target is 'The watched application.';
comment on column labels.run_id is 'The run that made the finding.';
comment on column labels.case_id is 'The gold case, or the item of traffic or of the log.';
comment on column labels.failure_kind is 'What was said to be wrong.';
comment on column labels.fingerprint is 'The incident that it was part of.';
comment on column labels.finding_right is 'Whether the finding was right; false for a false alarm.';
comment on column labels.reason is 'What the grader had said.';
comment on column labels.note is 'What the person said.';
comment on column labels.segment_id is 'The segment it came from.';

create table case_drafts (
  id varchar primary key,
  made_at timestamptz not null,
  done_by varchar not null,
  target varchar not null,
  run_id varchar not null,
  fingerprint varchar not null,
  origin varchar not null,
  turns varchar[] not null,
  gold varchar,
  bad_reply varchar,
  failure_kind varchar,
  suggested_severity tinyint not null,
  severity_reason varchar not null,
  record json not null,
  segment_id varchar not null
);
comment on table case_drafts is 'Cases that somebody wants, redacted. Nothing of it is gold before a person has reviewed it.';
comment on column case_drafts.id is 'The draft.';
comment on column case_drafts.made_at is 'When it was drafted (UTC).';
comment on column case_drafts.done_by is 'Who wants it.';
comment on column case_drafts.target is 'The watched application.';
comment on column case_drafts.run_id is 'The run that brought it up.';
comment on column case_drafts.fingerprint is 'The incident that it was part of.';
comment on column case_drafts.origin is 'Who asked: probe, traffic or log.';
comment on column case_drafts.turns is 'The user''s messages, redacted.';
comment on column case_drafts.gold is 'The right answer, where one is known.';
comment on column case_drafts.bad_reply is 'What the application said, redacted: the case must fail on it.';
comment on column case_drafts.failure_kind is 'What was wrong with it.';
comment on column case_drafts.suggested_severity is '1 annoying, 2 wrong, 3 page someone: a proposal.';
comment on column case_drafts.severity_reason is 'Why this severity is proposed.';
comment on column case_drafts.record is 'The whole draft as JSON.';
comment on column case_drafts.segment_id is 'The segment it came from.';

create table silences (
  id varchar primary key,
  author varchar not null,
  comment varchar not null,
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  fingerprint varchar,
  target varchar,
  kind varchar,
  case_id varchar,
  failure_kind varchar,
  ended_by varchar,
  record json not null,
  segment_id varchar not null
);
comment on table silences is 'Who asked for quiet about what, why, and until when.';
comment on column silences.id is 'The silence.';
comment on column silences.author is 'Who asked for it.';
comment on column silences.comment is 'Why.';
comment on column silences.starts_at is 'From when (UTC).';
comment on column silences.ends_at is 'Until when (UTC); a silence always ends.';
comment on column silences.fingerprint is 'Only this incident, where it is set.';
comment on column silences.target is 'Only this application, where it is set.';
comment on column silences.kind is 'Only incidents of this kind, where it is set.';
comment on column silences.case_id is 'Only this case, where it is set.';
comment on column silences.failure_kind is 'Only what is wrong in this way, where it is set.';
comment on column silences.ended_by is 'Who ended it before its time.';
comment on column silences.record is 'The whole silence as JSON.';
comment on column silences.segment_id is 'The segment it came from.';
