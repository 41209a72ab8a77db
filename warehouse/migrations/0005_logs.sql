-- The application's hallucination log: entries, lines that are none, what befell the log, where reading stands.

create table hallucinations (
  log varchar not null,
  id varchar not null,
  target varchar not null,
  fingerprint varchar not null,
  logged_at timestamptz,
  read_at timestamptz not null,
  tell boolean not null,
  user_text varchar,
  blocked_reply varchar,
  reasons varchar[] not null,
  unsupported_claims varchar[] not null,
  chunk_count integer,
  top_score double,
  policy_ids varchar[] not null,
  record json not null,
  segment_id varchar not null,
  primary key (log, id)
);
comment on table hallucinations is 'Replies that the application held back, as its own log says, each line once.';
comment on column hallucinations.log is 'The log that it stands in.';
comment on column hallucinations.id is 'Its place in the log: how often the log had been begun anew, byte, digest of the line.';
comment on column hallucinations.target is 'The application.';
comment on column hallucinations.fingerprint is 'The incident that tells of it.';
comment on column hallucinations.logged_at is 'When the application wrote it (UTC), if it says so.';
comment on column hallucinations.read_at is 'When it was read (UTC).';
comment on column hallucinations.tell is 'Whether people are to be told: not for what stood there before watching began.';
comment on column hallucinations.user_text is 'What was asked, redacted.';
comment on column hallucinations.blocked_reply is 'What would have been answered, redacted.';
comment on column hallucinations.reasons is 'Which of the application''s checks failed.';
comment on column hallucinations.unsupported_claims is 'Claims that nothing supports, redacted.';
comment on column hallucinations.chunk_count is 'How many pieces of documents had been found.';
comment on column hallucinations.top_score is 'The best piece''s score, 0 to 1.';
comment on column hallucinations.policy_ids is 'Documents that it was about.';
comment on column hallucinations.record is 'The whole entry as JSON, redacted; fields that the format does not know are in it.';
comment on column hallucinations.segment_id is 'The segment it came from.';

create table quarantined_lines (
  log varchar not null,
  id varchar not null,
  generation integer not null,
  byte_offset bigint not null,
  length bigint not null,
  sha256 varchar not null,
  reason varchar not null,
  detail varchar not null,
  segment_id varchar not null,
  primary key (log, id)
);
comment on table quarantined_lines is 'Lines of a log that are no entries; nothing of their text is kept.';
comment on column quarantined_lines.log is 'The log.';
comment on column quarantined_lines.id is 'Its place in the log, as for an entry.';
comment on column quarantined_lines.generation is 'How often the log had been begun anew.';
comment on column quarantined_lines.byte_offset is 'Where the line starts, in bytes.';
comment on column quarantined_lines.length is 'Bytes of the line.';
comment on column quarantined_lines.sha256 is 'Digest of the line, to find it in a copy of the log.';
comment on column quarantined_lines.reason is 'too_long, not_utf8, not_json or not_an_object.';
comment on column quarantined_lines.detail is 'The reason in words.';
comment on column quarantined_lines.segment_id is 'The segment it came from.';

create table log_cursors (
  log varchar not null,
  sequence bigint not null,
  generation integer not null,
  byte_offset bigint not null,
  record json not null,
  segment_id varchar not null,
  primary key (log, sequence)
);
comment on table log_cursors is 'Where reading of each log stood, written in one segment with what had been read.';
comment on column log_cursors.log is 'The log.';
comment on column log_cursors.sequence is 'Counts the steps of reading; the largest is where reading stands.';
comment on column log_cursors.generation is 'How often the log had been begun anew.';
comment on column log_cursors.byte_offset is 'Read up to here, in bytes of the newest file.';
comment on column log_cursors.record is 'The whole cursor as JSON.';
comment on column log_cursors.segment_id is 'The segment it came from.';
