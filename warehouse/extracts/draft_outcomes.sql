-- staged lines → draft_outcomes. A draft is decided once. The row of the earliest segment stays.
create or replace temp table incoming as
select
  r.draft_id as draft_id, r."at" as decided_at, r."by" as done_by, r.joined as joined, r.case_id as case_id,
  coalesce(r.suite, '') as suite, coalesce(r.note, '') as note, row_json as record, segment_id, position
from (
  select segment_id, position, row_json, json_transform(row_json, '{
    "draft_id": "VARCHAR", "at": "TIMESTAMPTZ", "by": "VARCHAR", "joined": "BOOLEAN", "case_id": "VARCHAR",
    "suite": "VARCHAR", "note": "VARCHAR"
  }') as r
  from staged where table_name = 'draft_outcomes'
);

insert or replace into draft_outcomes by name
select * exclude (position) from incoming i
where not exists (
  select 1 from draft_outcomes t where t.draft_id = i.draft_id and t.segment_id < i.segment_id
)
qualify row_number() over (partition by i.draft_id order by i.segment_id, i.position) = 1;
