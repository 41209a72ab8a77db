-- Archives whose segments are all loaded, so that a load need not read their manifests again.

create table archives (
  sha256 varchar primary key,
  segments integer not null,
  known_at timestamptz not null
);
comment on table archives is 'Parquet archives of old segments whose segments are all in the tables.';
comment on column archives.sha256 is 'SHA-256 of the Parquet file, which is also its name.';
comment on column archives.segments is 'How many segments it holds.';
comment on column archives.known_at is 'Since when the tables have all of it (UTC).';
