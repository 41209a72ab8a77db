"""Two machines share one journal in an S3 bucket: each command sees what the other machine wrote."""

from __future__ import annotations

import json

import boto3
import pytest
from moto.server import ThreadedMotoServer

from deployments.cli.data_folder import open_warehouse
from monitors.config.file import parse_config
from monitors.errors import ConfigError

BUCKET = "lookout-commands"
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test-hush", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture(scope="module")
def bucket():
    """Start a local S3 bucket, and yield the environment variables that S3 clients need for it."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    endpoint = f"http://127.0.0.1:{port}"
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id="test",
        aws_secret_access_key="test-hush",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket=BUCKET)
    yield KEYS | {"AWS_ENDPOINT_URL": endpoint}
    server.stop()


def machine(folder, journal=f"s3://{BUCKET}/lookout/journal"):
    """Return a machine with its own data folder and the shared journal."""
    folder.mkdir()
    place = f'[warehouse]\njournal = "{journal}"\n' if journal else ""
    (folder / "lookout.toml").write_text(
        f'data_folder = "data"\n[targets.bot]\nurl = "http://127.0.0.1:9"\nsuite = "s.jsonl"\n{place}',
        encoding="utf-8",
    )
    return folder


@pytest.mark.prefect
def test_decisions_of_one_machine_are_known_to_another(tmp_path, lookout, bucket):
    one, other = machine(tmp_path / "one"), machine(tmp_path / "other")

    def done(*arguments, cwd):
        result = lookout(*arguments, cwd=cwd, **bucket)
        assert result.returncode == 0, result.stderr
        return result.stdout

    done("warehouse", "load", cwd=one)
    done("alerts", "silence", "--target", "bot", "--for", "4h", "--reason", "moving house", "--as", "Ada", cwd=one)
    done("warehouse", "load", cwd=other)
    assert "moving house" in done("alerts", "silences", "--json", cwd=other)
    assert json.loads(done("warehouse", "check", "--json", cwd=other))["problems"] == []
    done("warehouse", "rebuild", cwd=other)
    assert "moving house" in done("alerts", "silences", "--json", cwd=other)
    assert not (one / "data" / "journal").exists()
    assert not (other / "data" / "journal").exists()


@pytest.mark.prefect
def test_a_bucket_that_cannot_be_reached_is_named_without_its_keys(tmp_path, lookout, bucket):
    folder = machine(tmp_path / "one", "s3://nowhere/journal")
    loading = lookout("warehouse", "load", cwd=folder, **bucket)
    assert loading.returncode == 4
    assert "s3://nowhere/journal" in loading.stderr
    assert "hush" not in loading.stderr


@pytest.mark.parametrize(
    "place", ["s3://key:hush@bucket/x", "s3://bucket/x?token=hush", "/var/lib/journal", "bucket/x"]
)
def test_a_place_with_keys_or_none_is_refused_without_repeating_them(place):
    values = {"targets": {"bot": {"url": "http://x/", "suite": "s.jsonl"}}, "warehouse": {"journal": place}}
    with pytest.raises(ConfigError, match=r"warehouse\.journal") as error:
        parse_config(values, "lookout.toml")
    assert "key:hush" not in str(error.value)


def test_another_folder_than_the_configuration_s_has_its_journal_beside_it(tmp_path):
    """A command with a `--data-folder` other than the configured one uses the journal inside that folder.

    For example, the configured shared journal must not be loaded into an archived data folder.
    """
    folder = machine(tmp_path / "one")
    archive = tmp_path / "archive"
    assert open_warehouse(folder / "lookout.toml", archive).journal.segments.format_location("x") == str(
        archive / "journal" / "x"
    )
