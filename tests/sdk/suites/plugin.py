"""Plugin of pytest for the SDKs' own suites: runs the tests that call the API, and writes how each ended.

The mock does not make answers of the right shape, so that assertions of shape are off. A refusal is an exception.
"""

import json
import os
import re

import pytest


def pytest_configure(config):
    import tests.utils

    tests.utils.assert_matches_type = lambda *_arguments, **_options: None


def pytest_collection_modifyitems(config, items):
    def calls_the_api(item):
        is_loose = "[loose" in item.nodeid and "TestAsync" not in item.nodeid
        # Tests of path parameters expect an error of the SDK itself.
        is_called = "path_params" not in item.nodeid and not any("respx" in name for name in item.fixturenames)
        return is_loose and is_called

    config.hook.pytest_deselected(items=[item for item in items if not calls_the_api(item)])
    items[:] = [item for item in items if calls_the_api(item)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Keeps the code of the error that an SDK raised."""
    report = yield
    error = call.excinfo.value if call.excinfo else None
    body = getattr(error, "body", None) or {}
    body = body.get("error", body) if isinstance(body, dict) else {}
    report.error_code = body.get("code")
    return report


def pytest_runtest_logreport(report):
    if report.when != "call" and not report.failed:
        return
    name = re.sub(r"^tests/api_resources/|\[loose.*|test_|\.py", "", report.nodeid).replace("/", ".")
    module, _, test = name.partition("::")
    line = {"module": module, "test": test, "passed": report.passed, "code": report.error_code}
    with open(os.environ["SUITE_OUTCOMES"], "a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")
