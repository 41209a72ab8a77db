-- staged lines → silences. A silence can only become shorter. The version that ends earlier stays.
create or replace temp table incoming as
select
  r.id as id, r.author as author, r.comment as comment, r.starts_at as starts_at, r.ends_at as ends_at,
  r.fingerprint as fingerprint, r.target as target, r.kind as kind, r.case_id as case_id,
  r.failure_kind as failure_kind, r.ended_by as ended_by, row_json as record, segment_id, position
from (
  select segment_id, position, row_json, json_transform(row_json, '{
    "id": "VARCHAR", "author": "VARCHAR", "comment": "VARCHAR", "starts_at": "TIMESTAMPTZ",
    "ends_at": "TIMESTAMPTZ", "fingerprint": "VARCHAR", "target": "VARCHAR", "kind": "VARCHAR",
    "case_id": "VARCHAR", "failure_kind": "VARCHAR", "ended_by": "VARCHAR"
  }') as r
  from staged where table_name = 'silences'
);

insert or replace into silences by name
select * exclude (position) from incoming i
where not exists (
  select 1 from silences t
  where t.id = i.id and (t.ends_at, t.segment_id) < (i.ends_at, i.segment_id)
)
qualify row_number() over (partition by i.id order by i.ends_at, i.segment_id, i.position) = 1;
