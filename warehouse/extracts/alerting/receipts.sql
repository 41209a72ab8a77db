-- staged lines → receipts. The row of the earliest segment stays.
create or replace temp table incoming as
select
  r.alert_id as alert_id, r."at" as tried_at, r.status as status, r.channel as channel, r.thread as thread,
  r.detail as detail, segment_id, position
from (
  select segment_id, position, json_transform(row_json, '{
    "alert_id": "VARCHAR", "at": "TIMESTAMPTZ", "status": "VARCHAR", "channel": "VARCHAR", "thread": "VARCHAR",
    "detail": "VARCHAR"
  }') as r
  from staged where table_name = 'receipts'
);

insert or replace into receipts by name
select * exclude (position) from incoming i
where not exists (
  select 1 from receipts t where t.alert_id = i.alert_id and t.tried_at = i.tried_at and t.status = i.status and t.segment_id < i.segment_id
)
qualify row_number() over (partition by i.alert_id, i.tried_at, i.status order by i.segment_id, i.position) = 1;
