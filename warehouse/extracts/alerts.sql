-- staged lines → alerts. A message is decided once and never changes.
insert into alerts by name
select
  r.id as id, r.kind as kind, r.target as target, r.run_id as run_id, r.created_at as created_at,
  r.severity as severity, r.reason as reason, r.commit as commit, len(r.items) as items,
  row_json as record, segment_id
from (
  select segment_id, position, row_json, json_transform(row_json, '{
    "id": "VARCHAR", "kind": "VARCHAR", "target": "VARCHAR", "run_id": "VARCHAR", "created_at": "TIMESTAMPTZ",
    "severity": "TINYINT", "reason": "VARCHAR", "commit": "VARCHAR", "items": ["JSON"]
  }') as r
  from staged where table_name = 'alerts'
)
order by segment_id, position
on conflict do nothing;
