-- staged lines → runs, metrics and tallies. The rows of the latest segment stay.
create or replace temp table incoming as
select r.*, segment_id, row_json as report from (
  select segment_id, position, row_json, json_transform(row_json, '{
    "run_id": "VARCHAR", "target": {"name": "VARCHAR", "environment": "VARCHAR"}, "suite_name": "VARCHAR",
    "suite_sha256": "VARCHAR", "commit": "VARCHAR", "started_at": "TIMESTAMPTZ", "finished_at": "TIMESTAMPTZ",
    "verdict": "VARCHAR",
    "scores": {
      "flat": {"earned": "VARCHAR", "total": "VARCHAR"}, "weighted": {"earned": "VARCHAR", "total": "VARCHAR"},
      "tallies": [{"severity": "TINYINT", "weight": "VARCHAR", "cases": "INTEGER", "not_correct": "INTEGER"}],
      "weights_version": "VARCHAR"
    },
    "metrics": [{
      "name": "VARCHAR", "passed": "INTEGER", "total": "INTEGER", "low": "DOUBLE", "high": "DOUBLE",
      "target": "DOUBLE", "met": "VARCHAR"
    }],
    "coverage": {"asked": "INTEGER", "graded": "INTEGER", "floor": "DOUBLE"},
    "latency": {"answered": "INTEGER", "p50_ms": "DOUBLE", "p95_ms": "DOUBLE", "objective_p50_ms": "DOUBLE"},
    "cost_usd": "VARCHAR", "interrupted": "BOOLEAN", "resumed_cases": "INTEGER"
  }') as r
  from staged where table_name = 'runs'
)
qualify row_number() over (partition by r.run_id order by segment_id desc, position desc) = 1;

delete from incoming i using runs t where t.run_id = i.run_id and t.segment_id > i.segment_id;
delete from metrics m using incoming i where m.run_id = i.run_id;
delete from tallies t using incoming i where t.run_id = i.run_id;

insert or replace into runs by name
select
  run_id, target.name as target, target.environment as environment, suite_name, suite_sha256, commit, started_at,
  finished_at, verdict,
  scores.flat.earned::decimal(18, 6) as flat_earned, scores.flat.total::decimal(18, 6) as flat_total,
  scores.weighted.earned::decimal(18, 6) as weighted_earned,
  scores.weighted.total::decimal(18, 6) as weighted_total,
  scores.weights_version as weights_version, coverage.asked as asked, coverage.graded as graded,
  coverage.floor as coverage_floor, latency.answered as answered, latency.p50_ms as p50_ms,
  latency.p95_ms as p95_ms, latency.objective_p50_ms as objective_p50_ms,
  cost_usd::decimal(18, 9) as cost_usd, interrupted, resumed_cases, report, segment_id
from incoming;

insert into metrics by name
select
  run_id, m.name as name, m.passed as passed, m.total as total, m.low as low, m.high as high, m.target as target,
  m.met as met
from (select run_id, unnest(metrics) as m from incoming);

insert into tallies by name
select
  run_id, t.severity as severity, t.weight::decimal(18, 6) as weight, t.cases as cases, t.not_correct as not_correct
from (select run_id, unnest(scores.tallies) as t from incoming);
