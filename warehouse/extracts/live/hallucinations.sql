-- staged lines → hallucinations. Each line of a log is one entry. The row of the earliest segment stays.
create or replace temp table incoming as
select
  r.entry.log as log, r.entry.id as id, r.target as target, r.fingerprint as fingerprint,
  r.entry.reply.ts as logged_at, r.read_at as read_at, r.notify as notify,
  r.entry.reply.user_text as user_text, r.entry.reply.blocked_reply as blocked_reply,
  r.entry.reply.reasons as reasons, r.entry.reply.unsupported_claims as unsupported_claims,
  r.entry.reply.chunk_count as chunk_count, r.entry.reply.top_score as top_score,
  r.entry.reply.policy_ids as policy_ids, row_json->'entry' as record, segment_id, position
from (
  select segment_id, position, row_json, json_transform(row_json, '{
    "target": "VARCHAR", "fingerprint": "VARCHAR", "read_at": "TIMESTAMPTZ", "notify": "BOOLEAN",
    "entry": {
      "log": "VARCHAR", "id": "VARCHAR",
      "reply": {
        "ts": "TIMESTAMPTZ", "user_text": "VARCHAR", "blocked_reply": "VARCHAR", "reasons": ["VARCHAR"],
        "unsupported_claims": ["VARCHAR"], "chunk_count": "INTEGER", "top_score": "DOUBLE", "policy_ids": ["VARCHAR"]
      }
    }
  }') as r
  from staged where table_name = 'hallucinations'
)
qualify row_number() over (partition by r.entry.log, r.entry.id order by segment_id, position) = 1;

-- rows of earlier loads:
insert or replace into hallucinations by name
select * exclude (position) from incoming i
where not exists (
  select 1 from hallucinations t where t.log = i.log and t.id = i.id and t.segment_id < i.segment_id
);
