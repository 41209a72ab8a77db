-- staged lines → actions. A click that is delivered twice counts once. The row of the earliest segment stays.
create or replace temp table incoming as
select
  r.id as id, r.kind as kind, r."at" as done_at, r."by" as done_by, r.via as via, r.alert_id as alert_id,
  coalesce(r.fingerprints, []) as fingerprints, r.note as note, row_json as record, segment_id, position
from (
  select segment_id, position, row_json, json_transform(row_json, '{
    "id": "VARCHAR", "kind": "VARCHAR", "at": "TIMESTAMPTZ", "by": "VARCHAR", "via": "VARCHAR",
    "alert_id": "VARCHAR", "fingerprints": ["VARCHAR"], "note": "VARCHAR"
  }') as r
  from staged where table_name = 'actions'
);

insert or replace into actions by name
select * exclude (position) from incoming i
where not exists (
  select 1 from actions t where t.id = i.id and t.segment_id < i.segment_id
)
qualify row_number() over (partition by i.id order by i.segment_id, i.position) = 1;
