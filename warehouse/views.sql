-- The views of the warehouse. Lookout creates them again when this file changes. Do not rename a view or a column.

create or replace view incidents as
select * from incident_history
qualify row_number() over (partition by fingerprint order by sequence desc) = 1;
comment on view incidents is 'The current state of each incident.';

create or replace view open_incidents as
select
  i.target, i.severity, i.kind, i.state, i.title, i.case_id, i.failure_kind, i.opened_at, i.last_seen_at,
  i.occurrences, i.first_commit, i.last_run_id, i.last_notified_at, i.fingerprint
from incidents i
where i.state <> 'resolved'
order by i.severity desc, i.last_seen_at desc;
comment on view open_incidents is 'The incidents that are not resolved, worst first.';

create or replace view run_summary as
select
  r.run_id, r.target, r.environment, r.suite_name, r.commit, r.started_at, r.finished_at,
  round(epoch(r.finished_at - r.started_at), 1) as duration_s,
  r.verdict,
  round(r.weighted_earned / nullif(r.weighted_total, 0), 3)::decimal(6, 3) as weighted,
  round(r.flat_earned / nullif(r.flat_total, 0), 3)::decimal(6, 3) as flat,
  r.weighted_earned, r.weighted_total, r.flat_earned, r.flat_total,
  coalesce(t.severity_3_not_correct, 0)::integer as severity_3_not_correct,
  coalesce(t.severity_2_not_correct, 0)::integer as severity_2_not_correct,
  coalesce(t.severity_1_not_correct, 0)::integer as severity_1_not_correct,
  r.asked, r.graded, r.p50_ms, r.p95_ms, r.cost_usd, r.interrupted, r.resumed_cases
from runs r
left join (
  select
    run_id,
    sum(not_correct) filter (where severity = 3) as severity_3_not_correct,
    sum(not_correct) filter (where severity = 2) as severity_2_not_correct,
    sum(not_correct) filter (where severity = 1) as severity_1_not_correct
  from tallies group by run_id
) t on t.run_id = r.run_id
order by r.finished_at desc;
comment on view run_summary is 'One row for each run, newest first: verdict, both scores, latency, cost, and the number of cases of each severity that were not correct. A failed case counts with the severity of its failure, which may be higher than the severity of the case.';
comment on column tallies.severity is 'Severity with which the cases count: of the failure if the case failed, otherwise of the case.';
comment on column tallies.not_correct is 'Number of cases with a wrong answer, or with a missing answer that the application caused.';

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
comment on view score_trend is 'Both scores of all finished runs over time, with the change since the previous run of the same suite.';

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
comment on view failures_by_kind is 'The number of failed cases of each run, by kind of failure and severity. A case with two kinds of failure counts in both.';

create or replace view asked_again as
select
  k.run_id, k.target, r.commit, k.case_id, k.place,
  count(*)::integer as asked,
  count(*) filter (where k.outcome = 'failed')::integer as failed,
  count(*) filter (where k.outcome = 'correct')::integer as "right",
  count(*) filter (where k.outcome = 'no_answer')::integer as no_answer,
  count(*) filter (where k.outcome = 'ungraded')::integer as ungraded,
  max(k.severity) as severity, max(k.asked_at) as last_asked_at, sum(k.cost_usd) as cost_usd
from rechecks k
left join runs r on r.run_id = k.run_id
group by k.run_id, k.target, r.commit, k.case_id, k.place
order by last_asked_at desc, k.case_id, k.place desc;
comment on view asked_again is 'Severe cases that failed and that Lookout asked again after the verdict: how often each case failed again, on the target and on the previous build.';

create or replace view metric_targets as
select
  r.target, m.name as metric, r.finished_at, m.run_id, r.suite_name,
  round(m.passed / nullif(m.total, 0), 4) as value, m.low, m.high, m.passed, m.total,
  m.target as wanted, m.met
from metrics m
join runs r on r.run_id = m.run_id
order by r.target, m.name, r.finished_at desc;
comment on view metric_targets is 'Every metric of every run, with its configured target in the column wanted, newest first.';

create or replace view path_winners as
select
  a.run_id, r.target, r.finished_at, coalesce(a.app_path, 'unknown') as app_path,
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
comment on view path_winners is 'For each run, the accuracy of each path of the application that answered, such as primary or fallback. The best path of a run comes first.';

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
comment on view latency is 'Percentiles of the answer times of each run, with the objective of the target and the maximum number of questions at the same time.';

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
comment on view cost is 'The cost of grading for each run, grader and judge model. Graders without a cost are not listed.';

create or replace view coverage as
select
  a.run_id, r.target, r.finished_at,
  count(*) as cases,
  count(*) filter (where a.outcome = 'correct') as correct,
  count(*) filter (where a.outcome = 'failed') as failed,
  count(*) filter (where a.outcome = 'no_answer' and a.blame = 'app') as no_answer_app,
  count(*) filter (where a.outcome = 'no_answer' and a.blame is distinct from 'app') as no_answer_other,
  count(*) filter (where a.outcome = 'ungraded') as ungraded,
  round(
    count(*) filter (where a.outcome in ('correct', 'failed') or (a.outcome = 'no_answer' and a.blame = 'app'))
    / count(*), 4
  ) as graded_share,
  r.coverage_floor
from assessments a
left join runs r on r.run_id = a.run_id
group by a.run_id, r.target, r.finished_at, r.coverage_floor
order by r.finished_at desc;
comment on view coverage is 'For each run, the number of cases that were graded, and the number of cases that were not graded, by reason.';

create or replace view unsent_alerts as
with tried as (
  select
    a.id, a.target, a.severity, a.kind, a.reason, a.created_at, a.run_id, count(r.alert_id) as tries,
    case
      when count(*) filter (where r.status <> 'failed') = 0 then 'waiting'
      when count(*) filter (where r.status not in ('failed', 'rejected')) = 0 then 'refused'
    end as state
  from alerts a
  left join receipts r on r.alert_id = a.id
  group by a.id, a.target, a.severity, a.kind, a.reason, a.created_at, a.run_id
), refused as (
  select t.id, t.target, t.created_at, unnest(json_extract_string(a.record, '$.items[*].incident.fingerprint')) as fingerprint
  from tried t join alerts a on a.id = t.id where t.state = 'refused' and t.reason <> 'reminder'
), sent as (
  select a.target, a.created_at, unnest(json_extract_string(a.record, '$.items[*].incident.fingerprint')) as fingerprint
  from alerts a semi join receipts r on r.alert_id = a.id and r.status = 'sent'
  where a.created_at >= (select min(created_at) from refused)
)
select t.* from tried t
where t.state = 'waiting' or t.id in (
  select r.id from refused r
  anti join sent s on s.target = r.target and s.fingerprint = r.fingerprint and s.created_at >= r.created_at
  anti join incidents i on i.fingerprint = r.fingerprint and (
    i.state = 'acknowledged'
    or i.state = 'resolved' and i.record->>'owner' = 'delivery'  -- the fault about refusals ends without a message
  )
)
order by t.severity desc, t.created_at;
comment on view unsent_alerts is
  'Messages that have not reached anyone yet, worst first, with the number of attempts to send them. The column state is waiting if Lookout will try again, or refused if Slack refused the message permanently. A refused message is listed until a later message about its incidents is sent, or a person acknowledges them.';
comment on column receipts.status is
  'sent, printed, failed (Lookout tries again), rejected (refused permanently), or left (another installation, from which this data folder was copied, sends it).';

create or replace view flaky_cases as
with r as (  -- numbers instead of texts: millions of answers are grouped by them
  select
    run_id, target, suite_name, suite_sha256, commit,
    dense_rank() over (order by target, suite_sha256, commit) as same,
    row_number() over (order by run_id) as place
  from runs where commit is not null
)
select
  r.target, r.suite_name, r.commit, a.case_id, a.asked, a.correct, a.failed, a.no_answer,
  r.run_id as last_run_id, r.suite_sha256
from (
  select
    a.case_id, r.same, count(*) as asked,
    count(*) filter (where a.outcome = 'correct') as correct,
    count(*) filter (where a.outcome = 'failed') as failed,
    count(*) filter (where a.outcome = 'no_answer') as no_answer,
    max(r.place) as place
  from assessments a
  join r on r.run_id = a.run_id
  where a.outcome <> 'ungraded' and (a.outcome <> 'no_answer' or a.blame = 'app')
  group by a.case_id, r.same
  having greatest(correct, failed, no_answer) < asked
) a
join r on r.place = a.place
order by a.failed desc, a.case_id;
comment on view flaky_cases is 'Cases that had different outcomes with the same suite and the same commit. Outcomes that Lookout itself caused do not count.';

create or replace view judge_agreement as
select
  j.run_id, r.target, r.finished_at, j.judge_model, j.judge_prompt_sha256, j.rubric_version, j.aspect, j.both_graded,
  j.agreed, round(j.agreed / j.both_graded, 4) as agreement, j.judge_too_mild, j.judge_too_strict
from (
  select
    run_id, judge_model, judge_prompt_sha256, rubric_version, aspect,
    count(*) as both_graded,
    count(*) filter (where passed = plain_passed) as agreed,
    count(*) filter (where passed and not plain_passed) as judge_too_mild,
    count(*) filter (where not passed and plain_passed) as judge_too_strict
  from grades where judge_model is not null and passed is not null and plain_passed is not null
  group by run_id, judge_model, judge_prompt_sha256, rubric_version, aspect
) j
left join runs r on r.run_id = j.run_id
order by r.finished_at desc, j.judge_model;
comment on view judge_agreement is 'How often a judge and the rule-based graders gave the same verdict on the same question about an answer. For the agreement with people, see judge_against_people.';

create or replace view judged_answers as
select
  j.run_id, j.case_id, j.repeat, r.target, s.origin, s.asked_at, a.case_severity, a.language, s.turns,
  case when s.graded_channel = 'wire' then coalesce(s.wire_text, s.visible_text) else s.visible_text end as answer,
  c.gold, a.expected_refusal, j.passed as judge_passed, j.score as judge_score, j.reason as judge_reason,
  j.failure_kind, j.judge_model, j.judge_prompt_sha256, j.rubric_version
from grades j
join results s on s.run_id = j.run_id and s.case_id = j.case_id and s.repeat = j.repeat
join assessments a on a.run_id = j.run_id and a.case_id = j.case_id and a.repeat = j.repeat
join (
  select run_id, target, suite_sha256 from runs union all select run_id, target, null from nightly_runs
) r on r.run_id = j.run_id
left join cases c on c.suite_sha256 = r.suite_sha256 and c.case_id = j.case_id
where j.judge_model is not null and j.passed is not null and j.aspect = 'factual_match' and s.outcome = 'exchange'
order by s.asked_at desc, j.run_id, j.case_id, j.repeat;
comment on view judged_answers is 'Every answer whose facts a judge graded, with the question, the gold (right answer), and the judge''s verdict and reason.';

create or replace view reviewed_answers as
select
  p.run_id, p.case_id, p.repeat, p.target, p.people, p.people_right, j.passed as judge_passed,
  p.inclusion_probability, j.judge_model, j.judge_prompt_sha256, j.rubric_version
from (
  select
    run_id, case_id, repeat, any_value(target) as target, count(distinct done_by) as people,
    bool_and(answer = 'right') as people_right, max(inclusion_probability) as inclusion_probability
  from labels where source = 'review' and answer in ('right', 'wrong')
  group by run_id, case_id, repeat having min(answer) = max(answer)
) p
join grades j on j.run_id = p.run_id and j.case_id = p.case_id and j.repeat = p.repeat
where j.judge_model is not null and j.passed is not null and j.aspect = 'factual_match'
order by p.run_id, p.case_id, p.repeat;
comment on view reviewed_answers is 'Answers that both a judge and people graded. An answer is not listed if people disagree about it or are unsure.';

create or replace view graded_answers as
select
  s.run_id, s.case_id, s.repeat, r.target, any_value(s.origin) as origin, s.asked_at,
  any_value(a.case_severity) as case_severity, any_value(a.outcome) as outcome, any_value(a.language) as language,
  any_value(s.turns) as turns,
  any_value(
    case when s.graded_channel = 'wire' then coalesce(s.wire_text, s.visible_text) else s.visible_text end
  ) as answer,
  any_value(c.gold) as gold, any_value(c.record->>'expected_citation') as expected_citation,
  any_value(c.record->>'$.triage.issue.title') as issue_title,
  any_value(c.record->>'$.triage.issue.body') as issue_body,
  any_value(a.expected_refusal) as expected_refusal,
  list({
    grader: g.grader, version: g.version, aspect: g.aspect, passed: g.passed, failure_kind: g.failure_kind,
    score: g.score, reason: g.reason, judge_model: g.judge_model, judge_prompt_sha256: g.judge_prompt_sha256,
    rubric_version: g.rubric_version, rubric: g.rubric
  } order by g.position) filter (where g.aspect <> 'usefulness') as grades,
  coalesce(list({
    grader: g.grader, version: g.version, aspect: g.aspect, passed: g.passed, failure_kind: g.failure_kind,
    score: g.score, reason: g.reason, judge_model: g.judge_model, judge_prompt_sha256: g.judge_prompt_sha256,
    rubric_version: g.rubric_version, rubric: g.rubric, criteria: g.criteria
  } order by g.position) filter (where g.aspect = 'usefulness' and g.rubric is not null), []) as ratings
from results s
join grades g on g.run_id = s.run_id and g.case_id = s.case_id and g.repeat = s.repeat
join assessments a on a.run_id = s.run_id and a.case_id = s.case_id and a.repeat = s.repeat
join (
  select run_id, target, suite_sha256 from runs union all select run_id, target, null from nightly_runs
) r on r.run_id = s.run_id
left join cases c on c.suite_sha256 = r.suite_sha256 and c.case_id = s.case_id
where s.outcome = 'exchange' and g.passed is not null
group by s.run_id, s.case_id, s.repeat, r.target, s.asked_at  -- what readers filter by, so that it is filtered first
having count(*) filter (where g.aspect <> 'usefulness') > 0
order by s.asked_at desc, s.run_id, s.case_id, s.repeat;
comment on view graded_answers is 'Every answer on which a grader or a judge gave a verdict, with the question, the gold (right answer), the outcome and all verdicts. The command lookout review takes its samples from this view. A report on an issue also has the issue and the ratings of the judges.';

create or replace view reviewed_grades as
with said as (
  select
    run_id, case_id, repeat, any_value(target) as target, count(distinct done_by) as people,
    bool_and(answer = 'right') as all_right, max(inclusion_probability) as inclusion_probability,
    list(distinct case
      when failure_kind in ('wrong_fact', 'missing_fact', 'unsupported_claim') then 'factual_match'
      when failure_kind in ('wrong_citation', 'missing_citation') then 'citation'
      when failure_kind in ('should_have_refused', 'over_refusal') then 'refusal'
      when failure_kind = 'wrong_language' then 'language'
      when failure_kind = 'pii_disclosure' then 'disclosure'
      when failure_kind = 'error_leak' then 'error_leak'
    end) as wrong_aspects
  from labels where source = 'review' and answer in ('right', 'wrong')
  group by run_id, case_id, repeat having min(answer) = max(answer)
)
select
  p.run_id, p.case_id, p.repeat, p.target, p.people, g.grader, g.version, g.aspect, g.passed as grader_passed,
  p.all_right as people_right, p.inclusion_probability
from said p
join grades g on g.run_id = p.run_id and g.case_id = p.case_id and g.repeat = p.repeat
where g.judge_model is null and g.passed is not null
  and (p.all_right or list_contains(p.wrong_aspects, g.aspect))
  -- Reviewers do not see sources that occur in no text, so their verdict does not cover these.
  and (g.aspect <> 'citation' or g.evidence is not null or coalesce(g.failure_kind, '') = 'missing_citation')
order by p.run_id, p.case_id, p.repeat, g.grader;
comment on view reviewed_grades is 'The verdicts of rule-based graders on answers that people reviewed. If a person said that an answer is right, all verdicts on it are listed. If a person named a fault, only the verdicts about that fault are listed. For rates with intervals, run: lookout review --figures.';

create or replace view judge_against_people as
select
  target, judge_model, judge_prompt_sha256, rubric_version,
  count(*) as both_graded,
  count(*) filter (where judge_passed = people_right) as agreed,
  count(*) filter (where judge_passed and people_right) as passed_right,
  count(*) filter (where judge_passed and not people_right) as passed_wrong,
  count(*) filter (where not judge_passed and people_right) as failed_right,
  count(*) filter (where not judge_passed and not people_right) as failed_wrong
from reviewed_answers
group by target, judge_model, judge_prompt_sha256, rubric_version
order by target, both_graded desc;
comment on view judge_against_people is 'How often each judge and people gave the same verdict on the same answers. For intervals and corrected rates, run: lookout review --figures.';

create or replace view rated_reports as
select
  run_id, case_id, repeat, target, asked_at, rating,
  helpful.score as helpfulness, nullif(helpful.reason, '') as helpfulness_reason,
  nullif(substr(report, helpful.quote.start + 1, helpful.quote."end" - helpful.quote.start), '') as helpfulness_quote,
  complete.score as completeness, nullif(complete.reason, '') as completeness_reason,
  nullif(substr(report, complete.quote.start + 1, complete.quote."end" - complete.quote.start), '') as completeness_quote,
  accurate.score as accuracy, nullif(accurate.reason, '') as accuracy_reason,
  nullif(substr(report, accurate.quote.start + 1, accurate.quote."end" - accurate.quote.start), '') as accuracy_quote,
  reason, judge_model, judge_prompt_sha256, rubric_version
from (
  select
    g.run_id, g.case_id, g.repeat, r.target, s.asked_at, g.rubric as rating, g.reason, g.judge_model,
    g.judge_prompt_sha256, g.rubric_version,
    case when s.graded_channel = 'wire' then coalesce(s.wire_text, s.visible_text) else s.visible_text end as report,
    from_json(g.criteria, '[{
      "name": "VARCHAR", "score": "TINYINT", "quote": {"start": "BIGINT", "end": "BIGINT"}, "reason": "VARCHAR"
    }]') as answers,
    list_filter(answers, lambda x: x.name = 'helpfulness')[1] as helpful,
    list_filter(answers, lambda x: x.name = 'completeness')[1] as complete,
    list_filter(answers, lambda x: x.name = 'accuracy')[1] as accurate
  from grades g
  left join results s on s.run_id = g.run_id and s.case_id = g.case_id and s.repeat = g.repeat
  left join (
    select run_id, target from runs union all select run_id, target from nightly_runs
  ) r on r.run_id = g.run_id
  where g.aspect = 'usefulness' and g.rubric is not null
)
order by asked_at desc, run_id, case_id, repeat;
comment on view rated_reports is 'Every report that a judge rated from 1 to 5. Each of the three criteria has the value 1 if the report meets it, 0 if not, and null if it was not rated. Each criterion also has the judge''s reason and the words of the report that the judge quoted.';

create or replace view reviewed_ratings as
select
  l.run_id, l.case_id, l.repeat, l.target, l.done_by, l.rating as people_rating, j.rubric as judge_rating,
  l.inclusion_probability, count(*) over (
    partition by l.run_id, l.case_id, l.repeat, j.judge_model, j.judge_prompt_sha256, j.rubric_version
  ) as people, j.judge_model, j.judge_prompt_sha256, j.rubric_version
from labels l
join grades j on j.run_id = l.run_id and j.case_id = l.case_id and j.repeat = l.repeat
where l.source = 'review' and l.rating is not null and j.judge_model is not null and j.rubric is not null
  and j.aspect = 'usefulness'
order by l.run_id, l.case_id, l.repeat, l.done_by;
comment on view reviewed_ratings is 'Reports that both a judge and people rated from 1 to 5, with one row for each person. The column people is the number of people who rated the report.';

create or replace view judge_ratings_against_people as
select
  target, judge_model, judge_prompt_sha256, rubric_version,
  count(*) as both_rated,
  count(*) filter (where judge_rating = people_rating) as same,
  round(avg(judge_rating), 4) as judge_average,
  round(avg(people_rating), 4) as people_average,
  round(avg(abs(judge_rating - people_rating)), 4) as mean_absolute_difference,
  round(avg(judge_rating - people_rating), 4) as mean_difference
from reviewed_ratings
group by target, judge_model, judge_prompt_sha256, rubric_version
order by target, both_rated desc;
comment on view judge_ratings_against_people is 'How the ratings of each judge differ from people''s ratings of the same reports. If mean_difference is above 0, the judge rates higher than people. For weighted kappa and intervals, run: lookout review --figures.';

create or replace view nightly_trend as
select
  target, due_at, run_id, conversations, sampled, graded,
  round(severe_rate, 6) as severe_rate, round(severe_low, 6) as severe_low, round(severe_high, 6) as severe_high,
  round(failed_rate, 6) as failed_rate, round(failed_low, 6) as failed_low, round(failed_high, 6) as failed_high,
  confidence, cost_usd,
  case
    when not drifted then 'none'
    when (record->>'$.drift_reading.after')::double > (record->>'$.drift_reading.before')::double then 'worse'
    when drifted then 'better'
  end as drift,
  case when drifted then (record->>'$.drift_reading.since')::timestamptz end as drift_since,
  graded_by
from nightly_runs
order by target, due_at, finished_at, run_id;
comment on view nightly_trend is 'One row for each night of live traffic: the number of conversations, how many of them were sampled and graded, and the cost of judging. severe_rate is the share (0 to 1) of conversations with a failure of severity 3, and failed_rate the share with any failure; each has its interval. drift says how severe_rate changed: none, worse or better; it is null if this was not tested. Compare only nights with the same graded_by.';

create or replace view last_drills as
select drill_id, started_at, finished_at, finished, passed, failed_station, found, to_do, fault, message_after_s, version
from drills
order by started_at desc, drill_id desc;
comment on view last_drills is 'Drills of the alert path, newest first: whether the alert about the planted wrong answer reached Slack, and after how many seconds. If it did not, the row names the part that failed, the reason, and what to do.';

create or replace view repeated_cases as
select
  target, run_id, commit, c.case_id as case_id, c.case_severity as severity, c.type as type, c.language as language,
  len(c.asks) as asked,
  len(list_filter(c.asks, lambda ask: ask.outcome = 'correct')) as correct,
  len(list_filter(c.asks, lambda ask: ask.outcome = 'failed')) as failed,
  len(list_distinct(list_transform(c.asks, lambda ask: ask.outcome))) > 1 as came_out_differently
from (
  select target, run_id, commit, unnest(json_transform(record->'$.cases', '[{
    "case_id": "VARCHAR", "case_severity": "TINYINT", "type": "VARCHAR", "language": "VARCHAR",
    "asks": [{"outcome": "VARCHAR"}]
  }]')) as c
  from repeatability_runs where void = ''
)
order by target, run_id, case_id;
comment on view repeated_cases is 'Cases that were asked twice on the same build, by session. Sessions that a deploy interrupted are not listed. For flip rates (how often only one of the two answers failed) with intervals, run: lookout repeatability.';

-- Clearer descriptions of tables and columns. Migrations never change, so a description is replaced here.
comment on table lookout_migrations is 'The migrations of the schema that were applied to this file.';
comment on table view_set is 'The version of the views in this file. Lookout creates the views again if its own version differs.';
comment on table segments is 'The journal segments whose rows are in the tables of this file.';
comment on table results is 'What the application answered to each case of each run, or the reason why there is no answer.';
comment on table assessments is 'The outcome and the severity of each case of each run.';
comment on table grades is 'One row for each verdict of a grader. A grade belongs to the assessment with the same run, case and repeat.';
comment on table runs is 'One row for each run, with its verdict and the numbers that led to the verdict.';
comment on table metrics is 'The metrics of each run, each with its 95 % interval.';
comment on table tallies is 'The numbers from which the scores of each run are computed, by severity.';
comment on table cases is 'The gold cases of every suite that was run.';
comment on table deploys is 'The deploys that were reported. Each commit of a target is listed once.';
comment on table incident_history is 'All states of all incidents. The view incidents has only the current states.';
comment on table alerts is 'Messages to people. Each message is stored before it is sent.';
comment on table receipts is 'The result of each attempt to deliver a message.';
comment on table leases is 'Which worker currently sends which message. A lease lasts for seconds and is not stored in the journal.';
comment on table archives is 'Parquet archives of old segments. An archive is listed only if all of its rows are in the tables.';
comment on table actions is 'People''s actions on incidents, such as acknowledge. A click that was delivered twice is listed once.';
comment on table action_outcomes is 'The result of each action. An action without a row here has not been carried out.';
comment on table labels is 'People''s verdicts on findings and on answers. Lookout measures judges and graders with them.';
comment on table case_drafts is 'Drafts of gold cases, redacted. A draft becomes a gold case only after a person has reviewed it.';
comment on table silences is 'Silences: which alerts they mute, until when, who created them, and why.';
comment on table hallucinations is 'Replies that the application blocked, from its own log. Each line of the log is listed once.';
comment on table quarantined_lines is 'Lines of a log that Lookout could not read as entries. The text of these lines is not stored.';
comment on table log_cursors is 'The position up to which each log was read.';
comment on table conversations is 'Conversations of real users that a nightly run counted. Only sampled conversations are stored with their texts.';
comment on table nightly_runs is 'The results of each nightly run on live traffic. The report of a resumed run replaces its earlier report.';
comment on table draft_outcomes is 'People''s decisions on drafts of gold cases. A draft without a row here still waits for a decision.';
comment on table rechecks is 'Severe cases that failed and that Lookout asked again after the verdict, with one row for each answer. These answers do not change a verdict, a rate or a score.';
comment on table drills is 'Drills of the alert path with a planted wrong answer. They do not change a score.';
comment on table repeatability_runs is 'Sessions in which sampled cases were asked twice on the same build. They do not change a score, a baseline or a trend.';
comment on column results.outcome is 'exchange if there was an answer, no_answer if there was no answer that can be graded.';
comment on column results.failed_attempts is 'Number of attempts without an answer before this outcome.';
comment on column results.partial_text is 'Text that had arrived when the answer broke off.';
comment on column assessments.failure_kinds is 'All kinds of failure that were found, worst first.';
comment on column assessments.unconfirmed is 'True if only one judge found the failure, or if rules pass the answer and a judge fails it.';
comment on column assessments.cluster is 'A name that related cases share, such as a policy.';
comment on column grades.status is 'judged, or abstained if the grader could not decide.';
comment on column grades.blame is 'Who caused the abstention: app, monitor or provider.';
comment on column tallies.weight is 'Weight of one case in the weighted score.';
comment on column cases.pipeline is 'How the case was made, such as manual or template.';
comment on column cases.cluster is 'A name that related cases share, such as a policy.';
comment on column cases.pair is 'Id that the translations of one question share.';
comment on column deploys.reported_by is 'Sender of the report.';
comment on column incident_history.sequence is 'Number of the decision. A later decision has a larger number.';
comment on column incident_history.last_notified_at is 'Time of the last alert about the incident (UTC). Null while an alert is withheld.';
comment on column incident_history.first_commit is 'The deploy with which the fault first appeared.';
comment on column leases.receipts is 'The number of receipts when the worker took the message. A new receipt ends the lease.';
comment on column archives.known_at is 'Time from which all rows of the archive are in the tables (UTC).';
comment on column actions.id is 'Id of the action. The same click always has the same id.';
comment on column actions.fingerprints is 'The incidents of the action. If empty, the action is about all incidents of the message.';
comment on column action_outcomes.effect is 'done, nothing_to_do (the incident was already in this state) or unknown (the message or the incident is not in this warehouse).';
comment on column labels.inclusion_probability is 'Probability with which the answer was sampled for review. To compute rates, weight the answer by 1 divided by this number.';
comment on column case_drafts.run_id is 'The run with the answer that the draft comes from.';
comment on column silences.ended_by is 'The person who ended the silence early.';
comment on column hallucinations.id is 'Position of the entry: number of log rotations, byte offset, and hash of the line.';
comment on column hallucinations.fingerprint is 'Fingerprint of the incident about this entry.';
comment on column hallucinations.notify is 'Whether Lookout sends an alert about the entry. False for entries from before Lookout watched the log.';
comment on column hallucinations.chunk_count is 'Number of document passages that the application had found.';
comment on column hallucinations.top_score is 'Score of the best passage, from 0 to 1.';
comment on column quarantined_lines.generation is 'Number of times that the log had been rotated.';
comment on column log_cursors.sequence is 'Number of the read operation. The row with the largest number is the current position.';
comment on column log_cursors.generation is 'Number of times that the log had been rotated.';
comment on column conversations.id is 'Id of the conversation in the source. An id that identifies a person is replaced with a hash.';
comment on column conversations.inclusion_probability is 'Probability with which the conversation was sampled. To compute rates, weight the conversation by 1 divided by this number. Null if it was not sampled.';
comment on column conversations.record is 'The sampled conversation as JSON, without personal data if the source''s settings say so. Null if it was not sampled or its texts were removed.';
comment on column nightly_runs.since is 'The run read conversations that were completed at or after this time (UTC).';
comment on column nightly_runs.until is 'The run read conversations that were completed before this time (UTC).';
comment on column nightly_runs.conversations is 'The number of conversations to which the rates apply.';
comment on column nightly_runs.confidence is 'Confidence level of the limits, such as 0.95. Null if no conversation was graded.';
comment on column nightly_runs.graded_by is 'Names of the graders and of the judge. Do not compare rates that different graders gave.';
comment on column nightly_runs.drifted is 'Whether the drift test has found a change of severe_rate. Null if this was not tested.';
comment on column rechecks.place is 'Where Lookout asked the case: target, or previous (the previous build, at previous_url).';
comment on column drills.finished is 'Whether the drill ended. If false, it was killed or could not store its result.';
comment on column drills.passed is 'Whether the drill ended and no station of the alert path failed.';
comment on column drills.fault is 'The planted fault in words. Empty if the drill failed before it planted the fault.';
comment on column drills.message_after_s is 'Time in seconds from the wrong answer until Slack accepted the message. Null if Slack did not accept it.';
comment on column repeatability_runs.graded_by is 'Hash of the graders, the judge and their settings. Repeats with different hashes are not combined.';
comment on column repeatability_runs.record is 'The whole session as JSON: its cases with the outcome of each answer, and the figures of all repeats. It contains no text of an answer.';
