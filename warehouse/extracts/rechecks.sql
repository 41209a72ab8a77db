-- staged lines → rechecks. The row of the earliest segment stays, in whatever order the segments are loaded.
create or replace temp table incoming as
select r.* exclude (cost_usd), coalesce(r.cost_usd, '0')::decimal(18, 9) as cost_usd, segment_id from (
  select segment_id, position, json_transform(row_json, '{
    "run_id": "VARCHAR", "target": "VARCHAR", "case_id": "VARCHAR", "place": "VARCHAR", "repeat": "INTEGER",
    "asked_at": "TIMESTAMPTZ", "outcome": "VARCHAR", "severity": "TINYINT", "failure_kinds": ["VARCHAR"],
    "reason": "VARCHAR", "builds": ["VARCHAR"], "cost_usd": "VARCHAR"
  }') as r
  from staged where table_name = 'rechecks'
)
qualify row_number() over (
  partition by r.run_id, r.case_id, r.place, r.repeat order by segment_id, position
) = 1;

insert or replace into rechecks by name
select * from incoming i
where not exists (
  select 1 from rechecks t where t.run_id = i.run_id and t.case_id = i.case_id and t.place = i.place
    and t.repeat = i.repeat and t.segment_id < i.segment_id
);
