-- staged lines → log_cursors. If two readers continued from the same position, the row of the earliest segment stays.
-- No entry is lost or counted twice, because entries are identified by their position in the log.
create or replace temp table incoming as
select
  r.log as log, r.sequence as sequence, r.current.generation as generation, r.current."offset" as byte_offset,
  row_json as record, segment_id, position
from (
  select segment_id, position, row_json, json_transform(row_json, '{
    "log": "VARCHAR", "sequence": "BIGINT", "current": {"generation": "INTEGER", "offset": "BIGINT"}
  }') as r
  from staged where table_name = 'log_cursors'
);

insert or replace into log_cursors by name
select * exclude (position) from incoming i
where not exists (
  select 1 from log_cursors t where t.log = i.log and t.sequence = i.sequence and t.segment_id < i.segment_id
)
qualify row_number() over (partition by i.log, i.sequence order by i.segment_id, i.position) = 1;
