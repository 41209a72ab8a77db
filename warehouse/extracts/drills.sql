-- staged lines → drills. A drill stores a report while it runs, and another one at its end. The latest one stays.
create or replace temp table incoming as
select
  r.drill_id as drill_id, r.started_at as started_at, r.finished_at as finished_at, r.finished as finished,
  r.finished and len(failures) = 0 as passed, failures[1].station as failed_station, failures[1].found as found,
  failures[1].to_do as to_do, r.fault as fault, r.message_after_s as message_after_s, r.version as version,
  row_json as record, segment_id
from (
  select *, list_filter(r.stations, lambda one: one.state = 'failed') as failures
  from (
    select segment_id, position, row_json, json_transform(row_json, '{
      "drill_id": "VARCHAR", "started_at": "TIMESTAMPTZ", "finished_at": "TIMESTAMPTZ", "finished": "BOOLEAN",
      "fault": "VARCHAR", "message_after_s": "DOUBLE", "version": "VARCHAR",
      "stations": [{"station": "VARCHAR", "state": "VARCHAR", "found": "VARCHAR", "to_do": "VARCHAR"}]
    }') as r
    from staged where table_name = 'drills'
  )
)
qualify row_number() over (partition by r.drill_id order by segment_id desc, position desc) = 1;

insert or replace into drills by name
select * from incoming i
where not exists (select 1 from drills t where t.drill_id = i.drill_id and t.segment_id > i.segment_id);
