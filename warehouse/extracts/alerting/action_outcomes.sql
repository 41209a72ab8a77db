-- staged lines → action_outcomes. An outcome is decided once, under the lock. The row of the earliest segment stays.
create or replace temp table incoming as
select
  r.action_id as action_id, r."at" as carried_out_at, r.effect as effect, coalesce(r.fingerprints, []) as fingerprints,
  r.text as text, segment_id, position
from (
  select segment_id, position, json_transform(row_json, '{
    "action_id": "VARCHAR", "at": "TIMESTAMPTZ", "effect": "VARCHAR", "fingerprints": ["VARCHAR"], "text": "VARCHAR"
  }') as r
  from staged where table_name = 'action_outcomes'
);

insert or replace into action_outcomes by name
select * exclude (position) from incoming i
where not exists (
  select 1 from action_outcomes t where t.action_id = i.action_id and t.segment_id < i.segment_id
)
qualify row_number() over (partition by i.action_id order by i.segment_id, i.position) = 1;
