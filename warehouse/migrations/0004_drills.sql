-- Fire drills: beside the runs and not among them, so that no score, trend or baseline can hold one.
create table drills (
  drill_id varchar primary key,
  started_at timestamptz not null,
  finished_at timestamptz not null,
  finished boolean not null,
  passed boolean not null,
  failed_station varchar,
  found varchar,
  to_do varchar,
  fault varchar not null,
  message_after_s double,
  version varchar not null,
  record json not null,
  segment_id varchar not null
);
comment on table drills is 'Fire drills: a planted wrong answer on its way through this installation. In no score: a drill is no run.';
comment on column drills.drill_id is 'The drill.';
comment on column drills.started_at is 'When it began (UTC).';
comment on column drills.finished_at is 'When it ended, or was last heard of (UTC).';
comment on column drills.finished is 'Whether it came to its end. One that did not was killed, or could not store how it ended.';
comment on column drills.passed is 'Whether the message about the wrong answer came through every station.';
comment on column drills.failed_station is 'The first station that failed. Null where none did.';
comment on column drills.found is 'What was found at that station.';
comment on column drills.to_do is 'What to do about it.';
comment on column drills.fault is 'The fault that was planted, in words. Empty where it did not come so far.';
comment on column drills.message_after_s is 'Seconds from the wrong answer to the message that Slack accepted. Null where it did not come so far.';
comment on column drills.version is 'The version of Lookout.';
comment on column drills.record is 'The whole report as JSON, with every station and the seconds that it took.';
comment on column drills.segment_id is 'The segment it came from.';
