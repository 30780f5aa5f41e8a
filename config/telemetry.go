package config

import "fmt"

// validateTelemetry checks what a single key cannot show: what the node would
// refuse, with the place in the file.
func (d decoder) validateTelemetry(s *Switch, path string) {
	if key, problem := s.Telemetry.Check(); problem != "" {
		d.Fail(path+".telemetry."+key, "%s", problem)
	}
	for i := range s.Ports {
		if t := s.Ports[i].Telemetry; t != nil {
			at := fmt.Sprintf("%s.ports[%d].telemetry", path, i)
			if key, problem := t.Check(s.Telemetry.INT); key != "" {
				d.Fail(at+"."+key, "%s", problem)
			} else if problem != "" {
				d.Fail(at, "%s", problem)
			}
		}
	}
}
