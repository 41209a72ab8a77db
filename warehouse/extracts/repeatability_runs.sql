-- staged lines → repeatability_runs. The row of the latest segment stays.
create or replace temp table incoming as
select
  r.run_id as run_id, r.target as target, r.environment as environment, r.suite_name as suite_name,
  r.suite_sha256 as suite_sha256, r.graded_by as graded_by, r.commit as commit, r.started_at as started_at,
  r.finished_at as finished_at, r.sampled as sampled, coalesce(r.void, '') as void,
  coalesce(r.stopped, '') as stopped, coalesce(r.cost_usd, '0')::decimal(18, 9) as cost_usd,
  row_json as record, segment_id
from (
  select segment_id, position, row_json, json_transform(row_json, '{
    "run_id": "VARCHAR", "target": "VARCHAR", "environment": "VARCHAR", "suite_name": "VARCHAR",
    "suite_sha256": "VARCHAR", "graded_by": "VARCHAR", "commit": "VARCHAR", "started_at": "TIMESTAMPTZ",
    "finished_at": "TIMESTAMPTZ", "sampled": "INTEGER", "void": "VARCHAR", "stopped": "VARCHAR",
    "cost_usd": "VARCHAR"
  }') as r
  from staged where table_name = 'repeatability_runs'
)
qualify row_number() over (partition by r.run_id order by segment_id desc, position desc) = 1;

insert or replace into repeatability_runs by name
select * from incoming i
where not exists (select 1 from repeatability_runs t where t.run_id = i.run_id and t.segment_id > i.segment_id);
