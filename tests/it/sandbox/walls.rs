//! The walls: user, capabilities, file systems, processes.

use super::inside;

#[tokio::test]
async fn an_agent_has_no_privilege_and_no_way_to_one() {
    let status =
        inside("id -u; id -g; id -G; grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status").await;
    let words: Vec<_> = status.split_whitespace().collect();
    assert_eq!(&words[..3], ["1001", "1001", "1001"], "{status}");
    for expected in
        ["CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"]
    {
        assert!(status.contains(expected), "{expected} is missing in {status}");
    }
}

#[tokio::test]
async fn only_workspace_and_two_small_temporary_places_can_be_written() {
    let script = r"
        for dir in / /etc /usr/local/bin /agent /llm-sock /home; do touch $dir/x 2>/dev/null && echo WROTE $dir; done
        for dir in /workspace /tmp /run; do touch $dir/x && rm $dir/x || echo CANNOT $dir; done
        rm -f /llm-sock/llm.sock 2>/dev/null; [ -S /llm-sock/llm.sock ] || echo REMOVED
        cp /bin/true /tmp/true; /tmp/true 2>/dev/null && echo EXECUTED
        dd if=/dev/zero of=/tmp/big bs=1M count=70 2>/dev/null; [ $(stat -c %s /tmp/big) -le 67108864 ] && echo BOUNDED
        dd if=/dev/zero of=/run/big bs=1M count=10 2>/dev/null; [ $(stat -c %s /run/big) -le 8388608 ] && echo BOUNDED
        grep -E ' (/tmp|/run) ' /proc/mounts | grep -c 'nosuid.*noexec'
        grep ' /llm-sock ' /proc/mounts | cut -d' ' -f4 | cut -d, -f1";
    assert_eq!(inside(script).await, "BOUNDED\nBOUNDED\n2\nro\n");
}

#[tokio::test]
async fn an_init_reaps_what_an_agent_leaves_behind() {
    let script = r"
        for i in $(seq 20); do (sleep 0.01 & exec true); done
        for i in $(seq 100); do grep -q . <(grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null) || break; sleep 0.05; done
        cat /proc/1/comm; grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l";
    assert_eq!(inside(script).await, "docker-init\n0\n");
}
