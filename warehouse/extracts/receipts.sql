-- staged lines → receipts.
insert into receipts by name
select
  r.alert_id as alert_id, r."at" as tried_at, r.status as status, r.channel as channel, r.thread as thread,
  r.detail as detail, segment_id
from (
  select segment_id, position, json_transform(row_json, '{
    "alert_id": "VARCHAR", "at": "TIMESTAMPTZ", "status": "VARCHAR", "channel": "VARCHAR", "thread": "VARCHAR",
    "detail": "VARCHAR"
  }') as r
  from staged where table_name = 'receipts'
)
order by segment_id, position
on conflict do nothing;
