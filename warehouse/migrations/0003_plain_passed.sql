-- What the graders without a model said beside a judge's grade, so that agreement is one scan and not a join of
-- ten million rows with themselves.

alter table grades add column plain_passed boolean;
comment on column grades.plain_passed is 'Beside a judge''s grade: whether all graders without a model that told passed it on the same question.';

update grades g set plain_passed = p.passed from (
  select run_id, case_id, repeat, aspect, bool_and(passed) as passed
  from grades where judge_model is null and passed is not null
  group by run_id, case_id, repeat, aspect
) p
where g.judge_model is not null
  and g.run_id = p.run_id and g.case_id = p.case_id and g.repeat = p.repeat and g.aspect = p.aspect;
