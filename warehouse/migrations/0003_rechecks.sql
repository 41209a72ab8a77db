-- Failed severe cases that were asked again after the verdict: apart from results and assessments, which count.
create table rechecks (
  run_id varchar not null,
  target varchar not null,
  case_id varchar not null,
  place varchar not null,
  repeat integer not null,
  asked_at timestamptz not null,
  outcome varchar not null,
  severity tinyint not null,
  failure_kinds varchar[] not null,
  reason varchar not null,
  builds varchar[] not null,
  cost_usd decimal(18, 9) not null,
  segment_id varchar not null,
  primary key (run_id, case_id, place, repeat)
);
comment on table rechecks is 'Failed severe cases asked again after the verdict, one row for each asking. They count in no verdict, rate or score.';
comment on column rechecks.run_id is 'The run that the case failed in.';
comment on column rechecks.target is 'The watched application.';
comment on column rechecks.case_id is 'The gold case.';
comment on column rechecks.place is 'Where it was asked: target, or previous (the address of the build before, previous_url).';
comment on column rechecks.repeat is 'Counts from 0 at each place.';
comment on column rechecks.asked_at is 'When (UTC).';
comment on column rechecks.outcome is 'correct, failed, no_answer or ungraded (no grader could decide).';
comment on column rechecks.severity is 'The failure''s severity when it failed, else the case''s.';
comment on column rechecks.failure_kinds is 'All that was found wrong this time, worst first.';
comment on column rechecks.reason is 'The outcome in one sentence.';
comment on column rechecks.builds is 'What the application said of its build beside the answer.';
comment on column rechecks.cost_usd is 'What judging it took.';
comment on column rechecks.segment_id is 'The segment it came from.';
