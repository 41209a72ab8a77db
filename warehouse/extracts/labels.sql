-- staged lines → labels. The row of the earliest segment stays.
create or replace temp table incoming as
select
  r.id as id, r."at" as given_at, r."by" as done_by, r.target as target, r.run_id as run_id, r.case_id as case_id,
  r.failure_kind as failure_kind, r.fingerprint as fingerprint, r.finding_right as finding_right,
  r.reason as reason, r.note as note, coalesce(r.source, 'alert') as source, coalesce(r.repeat, 0) as repeat,
  r.answer as answer, r.rating as rating, r.inclusion_probability as inclusion_probability, segment_id, position
from (
  select segment_id, position, json_transform(row_json, '{
    "id": "VARCHAR", "at": "TIMESTAMPTZ", "by": "VARCHAR", "target": "VARCHAR", "run_id": "VARCHAR",
    "case_id": "VARCHAR", "failure_kind": "VARCHAR", "fingerprint": "VARCHAR", "finding_right": "BOOLEAN",
    "reason": "VARCHAR", "note": "VARCHAR", "source": "VARCHAR", "repeat": "INTEGER", "answer": "VARCHAR",
    "rating": "TINYINT",
    "inclusion_probability": "DOUBLE"
  }') as r
  from staged where table_name = 'labels'
);

insert or replace into labels by name
select * exclude (position) from incoming i
where not exists (
  select 1 from labels t where t.id = i.id and t.segment_id < i.segment_id
)
qualify row_number() over (partition by i.id order by i.segment_id, i.position) = 1;
