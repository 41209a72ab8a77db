-- staged lines → deploys. The row of the earliest segment stays, in whatever order the segments are loaded.
create or replace temp table incoming as
select r.*, segment_id from (
  select segment_id, position, json_transform(row_json, '{
    "target": "VARCHAR", "commit": "VARCHAR", "occurred_at": "TIMESTAMPTZ", "reported_by": "VARCHAR"
  }') as r
  from staged where table_name = 'deploys'
)
qualify row_number() over (partition by r.target, r.commit order by segment_id, position) = 1;

insert or replace into deploys by name
select * from incoming i
where not exists (
  select 1 from deploys t where t.target = i.target and t.commit = i.commit and t.segment_id < i.segment_id
);
