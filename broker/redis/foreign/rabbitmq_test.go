//go:build unix

package foreign

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// rabbitMQ starts a server that ends with the test, and returns its URL.
func rabbitMQ(t *testing.T) string {
	t.Helper()
	ports := freePorts(t, 3)
	home := t.TempDir()
	env := append(os.Environ(), "HOME="+home, "RABBITMQ_NODENAME=nixie@localhost", "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		fmt.Sprint("RABBITMQ_NODE_PORT=", ports[0]), fmt.Sprint("RABBITMQ_DIST_PORT=", ports[1]), fmt.Sprint("ERL_EPMD_PORT=", ports[2]),
		"RABBITMQ_CONF_ENV_FILE="+os.DevNull, "RABBITMQ_LOGS=-")
	for _, name := range []string{"MNESIA_BASE", "LOG_BASE", "PLUGINS_EXPAND_DIR", "ENABLED_PLUGINS_FILE", "PID_FILE"} {
		env = append(env, "RABBITMQ_"+name+"="+filepath.Join(home, name))
	}
	cmd := exec.Command("/usr/lib/rabbitmq/bin/rabbitmq-server") // the one on the path becomes another user
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env, cmd.WaitDelay = &said, &said, env, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return startRabbitMQ(t, cmd, ports[0])
}

// freePorts returns ports that are free, each another one.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }() // when all are chosen
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports
}

func startRabbitMQ(t *testing.T, cmd *exec.Cmd, port int) string {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // all of its group, which may have ended
		_ = cmd.Wait()
		names := exec.Command("epmd", "-kill") // the server has started it, on that port
		if names.Env = cmd.Env; names.Run() != nil {
			t.Log("epmd still runs")
		}
	})
	until(t, "the start of RabbitMQ", func() bool {
		c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return fmt.Sprint("amqp://guest:guest@127.0.0.1:", port, "//")
}
