# DCGM's version 4 JSON of a diagnosis, simulated.
function test(name,    i, sep, status, text) {
    text = "{\"name\": \"" name "\", \"results\": ["
    sep = ""
    status = "Pass"
    for (i = 0; i < 8; i++) {
        if (missing != "" && i == missing + 0) continue
        if (name == "software" && pm == "off") {
            status = "Fail"
            text = text sep "{\"entity_group\": \"GPU\", \"entity_group_id\": 1, \"entity_id\": " i \
                ", \"status\": \"Fail\", \"warnings\": [{\"error_category\": 8, \"error_id\": 29, \"error_severity\": 5," \
                " \"warning\": \"Persistence Mode: Persistence mode for GPU " i " is disabled.\"}]}"
        } else
            text = text sep "{\"entity_group\": \"GPU\", \"entity_group_id\": 1, \"entity_id\": " i ", \"status\": \"Pass\"}"
        sep = ", "
    }
    return text "], \"test_summary\": {\"status\": \"" status "\"}}"
}
function category(name, tests,    n, i, t, text) {
    n = split(tests, t, " ")
    for (i = 1; i <= n; i++) text = text (i > 1 ? ", " : "") test(t[i])
    return "{\"category\": \"" name "\", \"tests\": [" text "]}"
}
BEGIN {
    print "{\"DCGM Diagnostic\": {\"test_categories\": ["
    print category("Deployment", "software")
    if (level >= 2) print ", " category("Integration", "pcie") ", " category("Hardware", "memory")
    if (level >= 3) print ", " category("Stress", "memory_bandwidth diagnostic targeted_stress targeted_power")
    if (level >= 4) print ", " category("Extended", "memtest pulse_test")
    print "]}, \"entity_groups\": [{\"entity_group\": \"GPU\", \"entity_group_id\": 1, \"entities\": ["
    for (i = 0; i < 8; i++)
        if (missing == "" || i != missing + 0)
            printf "%s{\"device_id\": \"2335\", \"entity_id\": %d, \"serial_num\": \"SIM000000000%d\"}", sep++ ? ", " : "", i, i
    print "]}], \"metadata\": {\"Driver Version Detected\": \"570.211.01\", \"version\": \"4.2.3\", \"simulated\": true}}"
    exit pm == "off" ? 226 : 0
}
