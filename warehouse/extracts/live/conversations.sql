-- staged lines → conversations. A conversation is counted once: the row of the earliest segment stays. If its texts
-- were removed, the id in its source was also removed, and the column record is null.
create or replace temp table incoming as
select
  r.target as target, r.source as source, r.id as id, r.run_id as run_id, r.completed_at as completed_at,
  r.stratum as stratum, r.sampled.inclusion_probability as inclusion_probability,
  if(r.sampled.conversation.origin_id <> '', (row_json->'$.sampled.conversation')::json, null) as record,
  segment_id, position
from (
  select segment_id, position, row_json, json_transform(row_json, '{
    "target": "VARCHAR", "source": "VARCHAR", "id": "VARCHAR", "run_id": "VARCHAR", "completed_at": "TIMESTAMPTZ",
    "stratum": "VARCHAR",
    "sampled": {"inclusion_probability": "DOUBLE", "conversation": {"origin_id": "VARCHAR"}}
  }') as r
  from staged where table_name = 'conversations'
)
qualify row_number() over (partition by r.target, r.source, r.id order by segment_id, position) = 1;

-- rows of earlier loads:
insert or replace into conversations by name
select * exclude (position) from incoming i
where not exists (
  select 1 from conversations t
  where t.target = i.target and t.source = i.source and t.id = i.id and t.segment_id < i.segment_id
);
