-- staged lines → incident_history. Each sequence number is assigned once, under the lock. The row of the earliest
-- segment stays.
create or replace temp table incoming as
select
  r.sequence as sequence, r.incident.fingerprint as fingerprint, r.incident.kind as kind,
  r.incident.target as target, r.incident.state as state, r.incident.severity as severity,
  r.incident.title as title, r.incident.case_id as case_id, r.incident.failure_kind as failure_kind,
  r.incident.opened_at as opened_at, r.incident.last_seen_at as last_seen_at,
  r.incident.last_notified_at as last_notified_at, r.incident.resolved_at as resolved_at,
  r.incident.occurrences as occurrences, r.incident.first_commit as first_commit,
  r.incident.last_run_id as last_run_id, row_json->'incident' as record, segment_id, position
from (
  select segment_id, position, row_json, json_transform(row_json, '{
    "sequence": "BIGINT",
    "incident": {
      "fingerprint": "VARCHAR", "kind": "VARCHAR", "target": "VARCHAR", "state": "VARCHAR", "severity": "TINYINT",
      "title": "VARCHAR", "case_id": "VARCHAR", "failure_kind": "VARCHAR", "opened_at": "TIMESTAMPTZ",
      "last_seen_at": "TIMESTAMPTZ", "last_notified_at": "TIMESTAMPTZ", "resolved_at": "TIMESTAMPTZ",
      "occurrences": "INTEGER", "first_commit": "VARCHAR", "last_run_id": "VARCHAR"
    }
  }') as r
  from staged where table_name = 'incidents'
);

insert or replace into incident_history by name
select * exclude (position) from incoming i
where not exists (
  select 1 from incident_history t where t.sequence = i.sequence and t.segment_id < i.segment_id
)
qualify row_number() over (partition by i.sequence order by i.segment_id, i.position) = 1;
