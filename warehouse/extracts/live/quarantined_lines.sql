-- staged lines → quarantined_lines. The row of the earliest segment stays.
create or replace temp table incoming as
select
  r.log as log, r.id as id, r.generation as generation, r."offset" as byte_offset, r.length as length,
  r.sha256 as sha256, r.reason as reason, r.detail as detail, segment_id, position
from (
  select segment_id, position, json_transform(row_json, '{
    "log": "VARCHAR", "id": "VARCHAR", "generation": "INTEGER", "offset": "BIGINT", "length": "BIGINT",
    "sha256": "VARCHAR", "reason": "VARCHAR", "detail": "VARCHAR"
  }') as r
  from staged where table_name = 'quarantined_lines'
);

insert or replace into quarantined_lines by name
select * exclude (position) from incoming i
where not exists (
  select 1 from quarantined_lines t where t.log = i.log and t.id = i.id and t.segment_id < i.segment_id
)
qualify row_number() over (partition by i.log, i.id order by i.segment_id, i.position) = 1;
