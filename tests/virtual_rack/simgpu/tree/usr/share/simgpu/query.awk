# nvidia-smi --query-gpu: values of the recorded node for the fields asked for.
function unit(value, name) { return units == "yes" ? value " " name : value }
function value(field, i) {
    if (field == "index") return i
    if (field == "name" || field == "gpu_name") return "NVIDIA H200"
    if (field == "uuid" || field == "gpu_uuid") return "GPU-51310000-0000-4000-8000-00000000000" i
    if (field == "serial" || field == "gpu_serial") return "SIM000000000" i
    if (field == "driver_version") return "570.211.01"
    if (field == "vbios_version") return "96.00.BC.00.01"
    if (field == "memory.total") return unit("143771", "MiB")
    if (field == "memory.used") return unit("1", "MiB")
    if (field == "power.limit") return unit("700.00", "W")
    if (field == "power.draw") return unit("76.21", "W")
    if (field == "temperature.gpu") return 31
    if (field == "pstate") return "P0"
    if (field == "persistence_mode") return pm == "off" ? "Disabled" : "Enabled"
    if (field == "pci.bus_id" || field == "gpu_bus_id") return bus[i]
    if (field ~ /^pcie.link.gen/) return 5
    if (field ~ /^pcie.link.width/) return 16
    if (field == "ecc.mode.current") return "Enabled"
    if (field == "ecc.errors.uncorrected.volatile.total") return i == ecc && ecc != "" ? 2 : 0
    if (field ~ /^ecc.errors/) return 0
    if (field == "clocks.sm") return unit("1980", "MHz")
    if (field ~ /^utilization/) return unit("0", "%")
    return "[N/A]"
}
BEGIN {
    split("18:2A:3A:5D:9A:AB:BA:DB", b, ":")
    for (i = 1; i <= 8; i++) bus[i - 1] = "00000000:" b[i] ":00.0"
    split("memory.total=MiB memory.used=MiB power.limit=W power.draw=W clocks.sm=MHz", u, " ")
    for (k in u) { split(u[k], kv, "="); known[kv[1]] = kv[2] }
    n = split(fields, field, ",")
    if (header == "yes")
        for (k = 1; k <= n; k++)
            printf "%s%s%s", field[k], (field[k] in known ? " [" known[field[k]] "]" : ""), (k < n ? ", " : "\n")
    for (i = 0; i < 8; i++)
        if (missing == "" || i != missing + 0)
            for (k = 1; k <= n; k++)
                printf "%s%s", value(field[k], i), (k < n ? ", " : "\n")
    print "simulated" > "/dev/stderr"
}
