-- staged lines → assessments and grades. The row of the latest segment stays. Its grades replace the earlier grades.
create or replace temp table incoming as
select r.*, segment_id, position from (
  select segment_id, position, json_transform(row_json, '{
    "run_id": "VARCHAR", "case_id": "VARCHAR", "repeat": "INTEGER", "outcome": "VARCHAR",
    "failure_kinds": ["VARCHAR"], "case_severity": "TINYINT", "severity": "TINYINT", "policy_row": "VARCHAR",
    "blame": "VARCHAR", "reason": "VARCHAR", "factual_match": "VARCHAR", "citation_present": "VARCHAR",
    "refused": "VARCHAR", "expected_refusal": "BOOLEAN", "type": "VARCHAR", "language": "VARCHAR",
    "cluster": "VARCHAR", "pair": "VARCHAR", "app_path": "VARCHAR", "unconfirmed": "BOOLEAN",
    "grades": [{
      "grader": "VARCHAR", "version": "VARCHAR", "aspect": "VARCHAR", "status": "VARCHAR", "passed": "BOOLEAN",
      "failure_kind": "VARCHAR", "score": "DOUBLE", "rubric": "TINYINT", "reason": "VARCHAR", "blame": "VARCHAR",
      "lineage": {"model": "VARCHAR", "prompt_sha256": "VARCHAR", "rubric_version": "VARCHAR"},
      "cost_usd": "VARCHAR", "evidence": ["JSON"], "criteria": "JSON"
    }]
  }') as r
  from staged where table_name = 'assessments'
);

delete from incoming i using (
  select run_id, case_id, repeat, max((segment_id, position)) as last
  from incoming group by run_id, case_id, repeat having count(*) > 1
) d
where i.run_id = d.run_id and i.case_id = d.case_id and i.repeat = d.repeat and (i.segment_id, i.position) <> d.last;

delete from incoming i using assessments t
where t.run_id = i.run_id and t.case_id = i.case_id and t.repeat = i.repeat and t.segment_id > i.segment_id;

create or replace temp table superseded as
select t.run_id, t.case_id, t.repeat from assessments t
join incoming i on t.run_id = i.run_id and t.case_id = i.case_id and t.repeat = i.repeat;

delete from grades g using superseded s
where g.run_id = s.run_id and g.case_id = s.case_id and g.repeat = s.repeat;

delete from assessments t using superseded s
where t.run_id = s.run_id and t.case_id = s.case_id and t.repeat = s.repeat;

insert into assessments by name select * exclude (grades, position) from incoming;

insert into grades by name
select
  run_id, case_id, repeat, place - 1 as position, g.grader as grader, g.version as version, g.aspect as aspect,
  g.status as status, g.passed as passed, g.failure_kind as failure_kind, g.score as score, g.rubric as rubric,
  g.reason as reason,
  g.blame as blame, g.lineage.model as judge_model, g.lineage.prompt_sha256 as judge_prompt_sha256,
  g.lineage.rubric_version as rubric_version, coalesce(g.cost_usd, '0')::decimal(18, 9) as cost_usd,
  case when len(g.evidence) > 0 then to_json(g.evidence) end as evidence,
  nullif(g.criteria::varchar, '[]')::json as criteria,
  case when g.lineage.model is not null then list_bool_and([
    p.passed for p in grades if p.lineage.model is null and p.passed is not null and p.aspect = g.aspect
  ]) end as plain_passed
from (
  select
    run_id, case_id, repeat, grades, unnest(grades) as g, generate_subscripts(grades, 1) as place
  from incoming
);
