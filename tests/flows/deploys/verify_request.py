"""Executes one verification as a worker does.

The first argument is the request as JSON. The output is the name of the final state.
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
