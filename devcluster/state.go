package devcluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// stateName is the file by which Up and Down recognize a cluster's folder.
const stateName = "state.json"

// stateKind is the file's "kind". A state.json without it is not ours.
const stateKind = "tattler-devcluster/1"

// state is what Up records for Down.
type state struct {
	Kind       string         `json:"kind"`
	Processes  []processState `json:"processes"` // in the order in which they were started
	Background Background     `json:"cluster"`   // empty until the start is complete
}

// processState is a process that outlives this one.
type processState struct {
	Name     string `json:"name"`
	PID      int    `json:"pid"`
	Identity string `json:"identity"` // from identify, right after the start
}

// alive reports whether that process still runs, and not another with its pid.
func (p processState) alive() bool { return p.Identity != "" && identify(p.PID) == p.Identity }

// whole reports whether the start was completed and every process still runs.
func (s state) whole() bool {
	for _, p := range s.Processes {
		if !p.alive() {
			return false
		}
	}
	return s.Background.URL != ""
}

// add records a process. It replaces one with the same name, which lost its port and ended.
func (s *state) add(p *process) {
	kept := s.Processes[:0]
	for _, old := range s.Processes {
		if old.Name != p.name {
			kept = append(kept, old)
		}
	}
	s.Processes = append(kept, processState{Name: p.name, PID: p.pid, Identity: identify(p.pid)})
}

func (s state) write(dir string) error {
	s.Kind = stateKind
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	if err := writeFileAtomic(filepath.Join(dir, stateName), append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return nil
}

// readState reads the state in dir. The error is fs.ErrNotExist without a state file.
func readState(dir string) (state, error) {
	data, err := os.ReadFile(filepath.Join(dir, stateName))
	if err != nil {
		return state{}, fmt.Errorf("read state: %w", err)
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return state{}, fmt.Errorf("read state: %s: %w", filepath.Join(dir, stateName), err)
	}
	if s.Kind != stateKind {
		return state{}, fmt.Errorf("read state: %s is not a cluster's: its kind is %q", filepath.Join(dir, stateName), s.Kind)
	}
	return s, nil
}
