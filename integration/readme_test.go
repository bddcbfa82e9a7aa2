package integration

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// TestReadme runs the commands that README.md tells a newcomer to type.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile("`(tattler [^`]*)`").FindAllSubmatch(text, -1)
	if len(commands) < 8 {
		t.Fatalf("README.md has only %d commands", len(commands))
	}
	tattler(t) // it is on the PATH
	for _, c := range commands {
		t.Run(string(c[1]), func(t *testing.T) {
			command := string(c[1])
			if !regexp.MustCompile(`--help$`).MatchString(command) {
				command += " --timeout 2s"
			}
			cmd := exec.Command("sh", "-c", command)
			cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig())
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
