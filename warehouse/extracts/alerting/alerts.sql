-- staged lines → alerts. A message is created once and never changes. The row of the earliest segment stays.
create or replace temp table incoming as
select
  r.id as id, r.kind as kind, r.target as target, r.run_id as run_id, r.created_at as created_at,
  r.severity as severity, r.reason as reason, r.commit as commit, len(r.items) as items,
  row_json as record, segment_id, position
from (
  select segment_id, position, row_json, json_transform(row_json, '{
    "id": "VARCHAR", "kind": "VARCHAR", "target": "VARCHAR", "run_id": "VARCHAR", "created_at": "TIMESTAMPTZ",
    "severity": "TINYINT", "reason": "VARCHAR", "commit": "VARCHAR", "items": ["JSON"]
  }') as r
  from staged where table_name = 'alerts'
);

insert or replace into alerts by name
select * exclude (position) from incoming i
where not exists (
  select 1 from alerts t where t.id = i.id and t.segment_id < i.segment_id
)
qualify row_number() over (partition by i.id order by i.segment_id, i.position) = 1;
