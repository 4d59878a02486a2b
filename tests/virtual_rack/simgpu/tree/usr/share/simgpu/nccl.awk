# An nccl-tests table (version 2.17.6's words) of a healthy 8-GPU H200 node, or of one with a fault. Simulated.
function clock(us) { return sprintf(us >= 10000 ? "%7.0f" : us >= 100 ? "%7.1f" : "%7.2f", us) }
function peak() {
    if (nodes > 1) {
        if (fault == "nic_slow") return name ~ /^(alltoall|sendrecv)/ ? 12 : 90
        if (name ~ /^alltoall/) return 50 * nodes / (nodes - 1) * (n - 1) / n * 0.95
        if (name ~ /^sendrecv/) return 47
        if (name ~ /^all_reduce/ && algo !~ /[Rr][Ii][Nn][Gg]/) return nodes == 2 ? 478 : 430
        return name ~ /^all_reduce/ ? 372 : 345
    }
    if (loopback == 1) return fault == "nic_slow" ? 11 : 47
    if (name ~ /^all_reduce/ && algo !~ /[Rr][Ii][Nn][Gg]/ && fault != "nvls_absent") return 482
    return 367
}
function side(size, skew,    us, alg) {
    us = 12 + size * busfactor / (peak() * skew * 1000) * (1 + 6e7 / (size + 1))
    alg = size / us / 1000
    return sprintf("  %s  %6.2f  %6.2f  %5s", clock(us), alg, alg * busfactor, wrong)
}
BEGIN {
    per = ranks > nodes ? ranks / nodes : gpus
    n = ranks * gpus
    if (name ~ /^all_reduce/) { busfactor = 2 * (n - 1) / n; redop = "sum"; root = -1 }
    else if (name ~ /^(all_gather|reduce_scatter|alltoall)/) { busfactor = (n - 1) / n; root = -1 }
    else { busfactor = n > 1; root = name ~ /^broadcast/ ? 0 : -1 }
    redop = name ~ /reduce/ ? "sum" : "none"
    wrong = check > 0 ? 0 : "N/A"
    if (n == 1) busfactor = 0
    print "# nccl-tests version 2.17.6 nccl-headers=22705 nccl-library=22705"
    print "# simulated"
    print "# Collective test starting: " name
    printf "# nThread 1 nGpus %d minBytes %.0f maxBytes %.0f step: %s warmup iters: %d iters: %d agg iters: 1 " \
        "validation: %d graph: 0\n#\n# Using devices\n", gpus, min, max, \
        (factor ? factor "(factor)" : step "(bytes)"), warmup, iters, check
    split(hosts, host, " ")
    split("18:2a:3a:5d:9a:ab:ba:db", bus, ":")
    for (r = 0; r < n; r++)
        if (missing == "" || r % per != missing + 0)
            printf "#  Rank %2d Group  0 Pid %6d on %10s device %2d [0000:%s:00] NVIDIA H200\n", \
                r, 4100 + r, host[int(r / per) + 1], r % per, bus[r % per + 1]
    if (fault == "nccl_crash" || missing != "") {
        printf "%s: Test NCCL failure common.cu:1182 'unhandled system error (run with NCCL_DEBUG=INFO for details) / '\n", \
            host[1]
        printf " .. %s pid 4100: Test failure common.cu:1061\n", host[1]
        exit 3
    }
    if (loopback == 1 && debug == "INFO")
        for (r = 0; r < n; r++)
            printf "%s:%d:%d [%d] NCCL INFO Channel 00/0 : %d[%d] -> %d[%d] [send] via NET/IB/%d%s\n", host[1], 4100 + r, \
                4200 + r, r, r, r, (r + 1) % n, (r + 1) % n, r, fault == "gdr_absent" ? "" : "/GDRDMA"
    print "#"
    print "#                                                              out-of-place                       in-place          "
    print "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"
    print "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       "
    if (fault ~ /^nccl_hang/) exit 0
    for (size = min; size <= max; size = factor ? size * factor : size + step) {
        if (fault == "nccl_wrong" && size == min) { wrong = 3; bad = 2 } else if (check > 0) wrong = 0
        out = side(size, 1)
        sub(/ +/, "", out)
        in_place = side(size, 1.002)
        sub(/ +/, "", in_place)
        printf "%12.0f  %12.0f  %8s  %6s  %6d  %s  %s\n", size, size / 4, "float", redop, root, out, in_place
        split(out, f, " "); split(in_place, g, " ")
        sum += f[3] + g[3]; count += 2
    }
    printf "# Out of bounds values : %d %s\n", bad, bad ? "FAILED" : "OK"
    printf "# Avg bus bandwidth    : %g \n#\n# Collective test concluded: %s\n#\n", count ? sum / count : 0, name
    exit bad ? 1 : 0
}
