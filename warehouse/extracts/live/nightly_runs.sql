-- staged lines → nightly_runs. The row of the latest segment stays.
create or replace temp table incoming as
select
  r.run_id as run_id, r.target as target, r.due_at as due_at, r.since as since, r.until as until,
  r.finished_at as finished_at, r."read" as "read", r.known as known, r.severe.conversations as conversations,
  r.sampled as sampled, coalesce(list_sum(list_transform(r.strata, lambda one: one.graded)), 0)::integer as graded,
  r.severe.rate as severe_rate, r.severe.low as severe_low, r.severe.high as severe_high,
  r.failed.rate as failed_rate, r.failed.low as failed_low, r.failed.high as failed_high,
  r.severe.confidence as confidence, r.judging.cost_usd::decimal(18, 9) as cost_usd, r.graded_by as graded_by,
  r.drift_reading.drifted as drifted, row_json as record, segment_id
from (
  select segment_id, position, row_json, json_transform(row_json, '{
    "run_id": "VARCHAR", "target": "VARCHAR", "due_at": "TIMESTAMPTZ", "since": "TIMESTAMPTZ", "until": "TIMESTAMPTZ",
    "finished_at": "TIMESTAMPTZ", "read": "INTEGER", "known": "INTEGER", "sampled": "INTEGER",
    "strata": [{"graded": "INTEGER"}],
    "severe": {
      "rate": "DOUBLE", "low": "DOUBLE", "high": "DOUBLE", "confidence": "DOUBLE", "conversations": "INTEGER"
    },
    "failed": {"rate": "DOUBLE", "low": "DOUBLE", "high": "DOUBLE"},
    "judging": {"cost_usd": "VARCHAR"}, "graded_by": "VARCHAR", "drift_reading": {"drifted": "BOOLEAN"}
  }') as r
  from staged where table_name = 'nightly_runs'
)
qualify row_number() over (partition by r.run_id order by segment_id desc, position desc) = 1;

insert or replace into nightly_runs by name
select * from incoming i
where not exists (select 1 from nightly_runs t where t.run_id = i.run_id and t.segment_id > i.segment_id);
