"""Plugin of pytest for the SDKs' own suites: runs the tests that call the API, and writes how each ended.

The mock does not make answers of the right shape, so that assertions of shape are off. A refusal is an exception.
"""

import json
import os
import re


def pytest_configure(config):
    import tests.utils

    tests.utils.assert_matches_type = lambda *_arguments, **_options: None


def pytest_collection_modifyitems(config, items):
    def calls_the_api(item):
        is_loose = "[loose" in item.nodeid and "TestAsync" not in item.nodeid
        return is_loose and not any("respx" in name for name in item.fixturenames)

    config.hook.pytest_deselected(items=[item for item in items if not calls_the_api(item)])
    items[:] = [item for item in items if calls_the_api(item)]


def pytest_runtest_logreport(report):
    if report.when != "call" and not report.failed:
        return
    name = re.sub(r"^tests/api_resources/|\[loose.*|test_|\.py", "", report.nodeid).replace("/", ".")
    module, _, test = name.partition("::")
    codes = re.findall(r"'code': '(\w+)'", str(report.longrepr)) if report.failed else []
    line = {"module": module, "test": test, "passed": report.passed, "code": codes[-1] if codes else None}
    with open(os.environ["SUITE_OUTCOMES"], "a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")
