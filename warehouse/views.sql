-- Named questions. Made anew whenever this file changes; renaming one is a breaking change for its readers.

create or replace view incidents as
select * from incident_history
qualify row_number() over (partition by fingerprint order by sequence desc) = 1;
comment on view incidents is 'How every incident stands now.';

create or replace view open_incidents as
select
  i.target, i.severity, i.kind, i.state, i.title, i.case_id, i.failure_kind, i.opened_at, i.last_seen_at,
  i.occurrences, i.first_commit, i.last_run_id, i.last_notified_at, i.fingerprint
from incidents i
where i.state <> 'resolved'
order by i.severity desc, i.last_seen_at desc;
comment on view open_incidents is 'What is broken now, worst first.';

create or replace view run_summary as
select
  r.run_id, r.target, r.environment, r.suite_name, r.commit, r.started_at, r.finished_at,
  round(epoch(r.finished_at - r.started_at), 1) as duration_s,
  r.verdict,
  round(r.weighted_earned / nullif(r.weighted_total, 0), 3)::decimal(6, 3) as weighted,
  round(r.flat_earned / nullif(r.flat_total, 0), 3)::decimal(6, 3) as flat,
  r.weighted_earned, r.weighted_total, r.flat_earned, r.flat_total,
  coalesce(t.severity_3_lost, 0)::integer as severity_3_lost,
  coalesce(t.severity_2_lost, 0)::integer as severity_2_lost,
  coalesce(t.severity_1_lost, 0)::integer as severity_1_lost,
  r.asked, r.told, r.p50_ms, r.p95_ms, r.cost_usd, r.interrupted, r.resumed_cases
from runs r
left join (
  select
    run_id,
    sum(lost) filter (where severity = 3) as severity_3_lost,
    sum(lost) filter (where severity = 2) as severity_2_lost,
    sum(lost) filter (where severity = 1) as severity_1_lost
  from tallies group by run_id
) t on t.run_id = r.run_id
order by r.finished_at desc;
comment on view run_summary is 'One line per run, newest first: verdict, both scores, what was lost by severity, latency, cost.';

create or replace view score_trend as
select
  target, suite_name, suite_sha256, finished_at, run_id, commit, verdict,
  round(weighted_earned / nullif(weighted_total, 0), 3)::decimal(6, 3) as weighted,
  round(flat_earned / nullif(flat_total, 0), 3)::decimal(6, 3) as flat,
  round(
    weighted_earned / nullif(weighted_total, 0)
    - lag(weighted_earned / nullif(weighted_total, 0)) over earlier, 3
  )::decimal(6, 3) as weighted_change,
  round(
    flat_earned / nullif(flat_total, 0) - lag(flat_earned / nullif(flat_total, 0)) over earlier, 3
  )::decimal(6, 3) as flat_change
from runs
where not interrupted
window earlier as (partition by target, suite_sha256 order by finished_at, run_id)
order by target, suite_name, finished_at;
comment on view score_trend is 'Both scores of finished runs over time, with the change since the last run of the same suite.';

create or replace view failures_by_kind as
select
  f.run_id, r.target, r.finished_at, f.failure_kind, f.severity,
  f.cases,
  round(f.cases / nullif(r.asked, 0), 4) as share_of_asked
from (
  select run_id, failure_kind, severity, count(*) as cases
  from (select run_id, severity, unnest(failure_kinds) as failure_kind from assessments where outcome = 'failed')
  group by run_id, failure_kind, severity
) f
left join runs r on r.run_id = f.run_id
order by r.finished_at desc, f.severity desc, f.cases desc;
comment on view failures_by_kind is 'How many cases of each run failed in which way, by severity. A case with two faults counts in both.';

create or replace view metric_targets as
select
  r.target, m.name as metric, r.finished_at, m.run_id, r.suite_name,
  round(m.passed / nullif(m.total, 0), 4) as value, m.low, m.high, m.passed, m.total,
  m.target as wanted, m.met
from metrics m
join runs r on r.run_id = m.run_id
order by r.target, m.name, r.finished_at desc;
comment on view metric_targets is 'Every metric of every run against its target, newest first.';

create or replace view path_winners as
select
  a.run_id, r.target, r.finished_at, coalesce(a.app_path, 'not told') as app_path,
  count(*) as cases,
  count(*) filter (where a.outcome = 'correct') as correct,
  count(*) filter (where a.outcome = 'failed') as failed,
  round(
    count(*) filter (where a.outcome = 'correct')
    / nullif(count(*) filter (where a.outcome in ('correct', 'failed')), 0), 4
  ) as accuracy
from assessments a
left join runs r on r.run_id = a.run_id
group by a.run_id, r.target, r.finished_at, a.app_path
order by r.finished_at desc, accuracy desc nulls last;
comment on view path_winners is 'Accuracy by the path that answered (primary, fallback), best first within a run.';

create or replace view latency as
select
  s.run_id, r.target, r.finished_at, s.answered, s.first_token_p50_ms, s.p50_ms, s.p95_ms, s.p99_ms, s.slowest_ms,
  r.objective_p50_ms, s.most_at_once
from (
  select
    run_id, count(*) as answered,
    round(quantile_cont(first_token_ms, 0.5), 1) as first_token_p50_ms,
    round(quantile_cont(total_ms, 0.5), 1) as p50_ms,
    round(quantile_cont(total_ms, 0.95), 1) as p95_ms,
    round(quantile_cont(total_ms, 0.99), 1) as p99_ms,
    round(max(total_ms), 1) as slowest_ms,
    max(concurrency) as most_at_once
  from results where outcome = 'exchange' and origin = 'probe' group by run_id
) s
left join runs r on r.run_id = s.run_id
order by r.finished_at desc;
comment on view latency is 'Percentiles of the answer time of each run, beside the target''s objective and how many questions ran at once.';

create or replace view cost as
select
  g.run_id, r.target, r.finished_at, g.grader, g.judge_model, g.grades, g.cost_usd,
  round(1000 * g.cost_usd / g.grades, 4)::decimal(18, 4) as usd_per_1000
from (
  select run_id, grader, judge_model, count(*) as grades, sum(cost_usd) as cost_usd
  from grades where cost_usd > 0 group by run_id, grader, judge_model
) g
left join runs r on r.run_id = g.run_id
order by r.finished_at desc, g.cost_usd desc;
comment on view cost is 'What grading cost, by run, grader and judging model. Free graders are left out.';

create or replace view coverage as
select
  a.run_id, r.target, r.finished_at,
  count(*) as cases,
  count(*) filter (where a.outcome = 'correct') as correct,
  count(*) filter (where a.outcome = 'failed') as failed,
  count(*) filter (where a.outcome = 'no_answer' and a.blame = 'app') as no_answer_app,
  count(*) filter (where a.outcome = 'no_answer' and a.blame is distinct from 'app') as no_answer_other,
  count(*) filter (where a.outcome = 'untold') as untold,
  round(
    count(*) filter (where a.outcome in ('correct', 'failed') or (a.outcome = 'no_answer' and a.blame = 'app'))
    / count(*), 4
  ) as told_share,
  r.coverage_floor
from assessments a
left join runs r on r.run_id = a.run_id
group by a.run_id, r.target, r.finished_at, r.coverage_floor
order by r.finished_at desc;
comment on view coverage is 'Of how many cases of each run an outcome could be told, and why not of the others.';

create or replace view unsent_alerts as
select a.id, a.target, a.severity, a.kind, a.reason, a.created_at, a.run_id, count(r.alert_id) as tries
from alerts a
left join receipts r on r.alert_id = a.id
group by a.id, a.target, a.severity, a.kind, a.reason, a.created_at, a.run_id
having count(*) filter (where r.status in ('sent', 'printed', 'rejected')) = 0
order by a.severity desc, a.created_at;
comment on view unsent_alerts is 'Messages that nobody has seen yet, worst first, with how often sending was tried.';

create or replace view flaky_cases as
select
  r.target, r.suite_name, r.commit, a.case_id, a.asked, a.correct, a.failed, a.no_answer,
  a.last_run_id, a.suite_sha256
from (
  select
    a.case_id, r.target as of_target, r.suite_sha256, r.commit as of_commit, count(*) as asked,
    count(*) filter (where a.outcome = 'correct') as correct,
    count(*) filter (where a.outcome = 'failed') as failed,
    count(*) filter (where a.outcome = 'no_answer') as no_answer,
    max(a.run_id) as last_run_id
  from assessments a
  join runs r on r.run_id = a.run_id
  where a.outcome <> 'untold' and r.commit is not null
  group by a.case_id, r.target, r.suite_sha256, r.commit
  having min(a.outcome) <> max(a.outcome)
) a
join runs r on r.run_id = a.last_run_id
order by a.failed desc, a.case_id;
comment on view flaky_cases is 'Cases that came out differently although suite and commit were the same.';

create or replace view judge_agreement as
select
  j.run_id, r.target, r.finished_at, j.judge_model, j.rubric_version, j.aspect, j.both_told, j.agreed,
  round(j.agreed / j.both_told, 4) as agreement, j.judge_too_mild, j.judge_too_strict
from (
  select
    run_id, judge_model, rubric_version, aspect,
    count(*) as both_told,
    count(*) filter (where passed = plain_passed) as agreed,
    count(*) filter (where passed and not plain_passed) as judge_too_mild,
    count(*) filter (where not passed and plain_passed) as judge_too_strict
  from grades where judge_model is not null and passed is not null and plain_passed is not null
  group by run_id, judge_model, rubric_version, aspect
) j
left join runs r on r.run_id = j.run_id
order by r.finished_at desc, j.judge_model;
comment on view judge_agreement is 'How often a judge and the graders without a model agree where both gave a verdict on the same question.';
