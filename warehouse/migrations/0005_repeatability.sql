-- Sessions in which sampled cases were asked twice against the same build.
create table repeatability_runs (
  run_id varchar primary key,
  target varchar not null,
  environment varchar not null,
  suite_name varchar not null,
  suite_sha256 varchar not null,
  graded_by varchar not null,
  commit varchar,
  started_at timestamptz not null,
  finished_at timestamptz not null,
  sampled integer not null,
  void varchar not null,
  stopped varchar not null,
  cost_usd decimal(18, 9) not null,
  record json not null,
  segment_id varchar not null
);
comment on table repeatability_runs is 'Sessions in which sampled cases were asked twice against the same build. They are in no score, baseline or trend.';
comment on column repeatability_runs.run_id is 'The session.';
comment on column repeatability_runs.target is 'The watched application.';
comment on column repeatability_runs.environment is 'staging or production.';
comment on column repeatability_runs.suite_name is 'The suite that cases were sampled from.';
comment on column repeatability_runs.suite_sha256 is 'The suite''s hash.';
comment on column repeatability_runs.graded_by is 'Hash of graders, judge and their settings: repeats of two are not put together.';
comment on column repeatability_runs.commit is 'The commit that served before and after, when the application names it.';
comment on column repeatability_runs.started_at is 'When the session began (UTC).';
comment on column repeatability_runs.finished_at is 'When it ended (UTC).';
comment on column repeatability_runs.sampled is 'Cases that were to be asked twice.';
comment on column repeatability_runs.void is 'Why its pairs do not count, such as a deploy in between; empty when they do.';
comment on column repeatability_runs.stopped is 'Why fewer cases were asked twice; empty when all were.';
comment on column repeatability_runs.cost_usd is 'What judging cost, in US dollars.';
comment on column repeatability_runs.record is 'The whole session as JSON, without the text of any answer: its cases with what each asking came to, and the figures of all repeats by then.';
comment on column repeatability_runs.segment_id is 'The segment it came from.';
