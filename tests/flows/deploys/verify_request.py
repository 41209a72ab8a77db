"""A program that runs one verification like a worker, and prints the name of its final state.

Its argument is the request as JSON.
"""

from __future__ import annotations

import asyncio
import sys

from flows.verify.flow import verify_deploy
from flows.verify.run_folder import VerifyRequest


def main() -> None:
    request = VerifyRequest.model_validate_json(sys.argv[1])
    state = asyncio.run(verify_deploy(request, return_state=True))
    print(state.name, flush=True)


if __name__ == "__main__":
    main()
