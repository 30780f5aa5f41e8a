package cc

import (
	"maps"
	"math"
	"strconv"
)

// NS3Names are the names that NS3 knows.
var NS3Names = []string{"hpcc", "hpcc_mi5", "dcqcn", "dcqcn_win", "timely", "timely_win", "dctcp"}

// NS3 returns the algorithm and the options that agree with the published
// simulator of HPCC's authors (github.com/alibaba-edu/High-Precision-Congestion-Control,
// simulation/run.py) for NICs of gbps Gb/s. Its increments are whole Mb/s that
// grow with the NIC's rate, cut off; its least rate is 1 Gb/s throughout. ok
// is false for a name that it does not have.
func NS3(name string, gbps float64) (algorithm string, params map[string]string, ok bool) {
	perSpeed := func(mbps, gb float64) string {
		return strconv.FormatFloat(math.Floor(mbps*gbps/gb), 'f', -1, 64) + "Mbps"
	}
	params = map[string]string{"minrate": "1000Mbps"}
	set := func(more map[string]string) { maps.Copy(params, more) }
	switch name {
	case "hpcc", "hpcc_mi5":
		// The script's --hpai 50 at 100 Gb/s, as its page runs it: the paper's
		// 80 bytes in 13 us. Without the option it would be 40.
		algorithm = "hpcc"
		set(map[string]string{"form": "rate", "eta": "0.95", "maxStage": "0", "ai": perSpeed(50, 100),
			"reaction": "hpcc", "fast_react": "true", "sample_feedback": "false", "multirate": "false"})
		if name == "hpcc_mi5" {
			params["maxStage"] = "5"
		}
	case "dcqcn", "dcqcn_win":
		algorithm = "dcqcn"
		set(map[string]string{"cut": "tick", "alpha_timer": "1us", "td": "4us", "ti": "300us", "g": "0.00390625", "alpha0": "1",
			"f": "1", "byte_counter": "0", "rai": perSpeed(5, 25), "rhai": perSpeed(50, 25), "clamp": "false", "window": "none"})
	case "timely", "timely_win":
		algorithm = "timely"
		set(map[string]string{"update": "window", "hai": "increase", "hai_after": "5", "hai_factor": "5", "serialization": "keep",
			"alpha": "0.875", "beta": "0.8", "tlow": "50us", "thigh": "500us", "minrtt": "20us", "delta": perSpeed(10, 10),
			"fmin": "0", "gate": "0", "idle": "0", "scale": "false", "window": "none"})
	case "dctcp":
		algorithm = "dctcp"
		set(map[string]string{"g": "0.0625", "alpha0": "1", "ai_rate": "615Mbps", "fraction": "inflight", "loss": "none"})
	default:
		return "", nil, false
	}
	if name == "dcqcn_win" || name == "timely_win" {
		params["window"] = "rate"
	}
	return algorithm, params, true
}
