-- Live traffic: which conversations were taken, once each, and what every night came to.

create table conversations (
  target varchar not null,
  source varchar not null,
  id varchar not null,
  run_id varchar not null,
  completed_at timestamptz not null,
  stratum varchar not null,
  inclusion_probability double,
  record json,
  segment_id varchar not null,
  primary key (target, source, id)
);
comment on table conversations is 'Conversations of real users that a night counted, each once; texts, protected, only of those that were drawn.';
comment on column conversations.target is 'The application.';
comment on column conversations.source is 'Where it was read from.';
comment on column conversations.id is 'The source''s id; one that tells of a person is replaced by a digest before it is stored.';
comment on column conversations.run_id is 'The night that took it.';
comment on column conversations.completed_at is 'When it ended (UTC), as the source says.';
comment on column conversations.stratum is 'The stratum that it was counted in.';
comment on column conversations.inclusion_probability is 'How likely it was to be drawn: weigh it by one over this. Null where it was not drawn.';
comment on column conversations.record is 'The drawn conversation as JSON, protected as its source''s settings say. Null where it was not drawn, and once its texts have aged out.';
comment on column conversations.segment_id is 'The segment it came from.';

create table nights (
  run_id varchar primary key,
  target varchar not null,
  night timestamptz not null,
  since timestamptz not null,
  until timestamptz not null,
  finished_at timestamptz not null,
  "read" integer not null,
  known integer not null,
  conversations integer not null,
  drawn integer not null,
  told integer not null,
  severe_rate double,
  severe_low double,
  severe_high double,
  failed_rate double,
  failed_low double,
  failed_high double,
  confidence double,
  cost_usd decimal(18, 9) not null,
  graded_by varchar not null,
  drifted boolean,
  record json not null,
  segment_id varchar not null
);
comment on table nights is 'What each night of live traffic came to. A resumed night replaces its earlier report.';
comment on column nights.run_id is 'The run of the night.';
comment on column nights.target is 'The application.';
comment on column nights.night is 'When the night began (UTC); nights are told apart and ordered by it.';
comment on column nights.since is 'Conversations that were completed from here on (UTC) were looked for.';
comment on column nights.until is 'Up to here (UTC).';
comment on column nights.finished_at is 'When the night''s work was done (UTC).';
comment on column nights."read" is 'Conversations that were new.';
comment on column nights.known is 'Conversations that an earlier night had taken.';
comment on column nights.conversations is 'Conversations that the rates speak of.';
comment on column nights.drawn is 'How many of them were drawn.';
comment on column nights.told is 'How many of those drawn got a verdict.';
comment on column nights.severe_rate is 'Share of all conversations with a failure of severity 3, 0 to 1. Null when none was told.';
comment on column nights.severe_low is 'Lower limit of that share.';
comment on column nights.severe_high is 'Upper limit of that share.';
comment on column nights.failed_rate is 'Share of all conversations with any failure that was told, 0 to 1. Null when none was told.';
comment on column nights.failed_low is 'Lower limit of that share.';
comment on column nights.failed_high is 'Upper limit of that share.';
comment on column nights.confidence is 'How often such intervals hold the true share, 0 to 1. Null when none was told.';
comment on column nights.cost_usd is 'What judging cost.';
comment on column nights.graded_by is 'What told: rates that another one told are other rates.';
comment on column nights.drifted is 'Whether the severity-3 rate is another than before, by a test made to be looked at every night. Null when it was not tested.';
comment on column nights.record is 'The whole report as JSON.';
comment on column nights.segment_id is 'The segment it came from.';
