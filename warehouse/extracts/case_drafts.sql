-- staged lines → case_drafts. The row of the earliest segment stays.
create or replace temp table incoming as
select
  r.id as id, r.made_at as made_at, r."by" as done_by, r.target as target, r.run_id as run_id,
  r.fingerprint as fingerprint, r.origin as origin, r.turns as turns, r.gold as gold, r.bad_reply as bad_reply,
  r.failure_kind as failure_kind, r.suggested_severity as suggested_severity,
  r.severity_reason as severity_reason, row_json as record, segment_id, position
from (
  select segment_id, position, row_json, json_transform(row_json, '{
    "id": "VARCHAR", "made_at": "TIMESTAMPTZ", "by": "VARCHAR", "target": "VARCHAR", "run_id": "VARCHAR",
    "fingerprint": "VARCHAR", "origin": "VARCHAR", "turns": ["VARCHAR"], "gold": "VARCHAR",
    "bad_reply": "VARCHAR", "failure_kind": "VARCHAR", "suggested_severity": "TINYINT",
    "severity_reason": "VARCHAR"
  }') as r
  from staged where table_name = 'case_drafts'
);

insert or replace into case_drafts by name
select * exclude (position) from incoming i
where not exists (
  select 1 from case_drafts t where t.id = i.id and t.segment_id < i.segment_id
)
qualify row_number() over (partition by i.id order by i.segment_id, i.position) = 1;
