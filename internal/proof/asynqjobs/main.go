// Asynqjobs does what programs of github.com/hibiken/asynq do, for tests of broker/redis/foreign.
// It is a module of its own, so that no program that uses Nixie asks for asynq.
//
//	asynqjobs enqueue ID PAYLOAD | retry ID | remove ID | archived | work
//
// Its Redis is that of $REDIS_URL. Archived prints how many tasks are archived. Work runs tasks
// until its standard input ends: they fail until the key fixed is there, and then go to the lists
// done and ran.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const queue = "mails"

func main() {
	if err := run(os.Getenv("REDIS_URL"), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "asynqjobs:", err)
		os.Exit(1)
	}
}

func run(url string, args []string) error {
	to, err := asynq.ParseRedisURI(url)
	if err != nil {
		return err
	}
	inspector := asynq.NewInspector(to)
	defer func() { _ = inspector.Close() }()
	switch {
	case len(args) == 3 && args[0] == "enqueue":
		client := asynq.NewClient(to)
		defer func() { _ = client.Close() }()
		task := asynq.NewTaskWithHeaders("mail", []byte(args[2]), map[string]string{"trace": "t1"})
		_, err = client.Enqueue(task, asynq.TaskID(args[1]), asynq.Queue(queue), asynq.MaxRetry(0))
	case len(args) == 2 && args[0] == "retry":
		err = inspector.RunTask(queue, args[1])
	case len(args) == 2 && args[0] == "remove":
		err = inspector.DeleteTask(queue, args[1])
	case len(args) == 1 && args[0] == "archived":
		var list []*asynq.TaskInfo
		list, err = inspector.ListArchivedTasks(queue)
		fmt.Println(len(list))
	case len(args) == 1 && args[0] == "work":
		err = work(url, to)
	default:
		err = fmt.Errorf("%q: want one of the acts", args)
	}
	return err
}

// work runs tasks until standard input ends.
func work(url string, to asynq.RedisConnOpt) error {
	options, err := redis.ParseURL(url)
	if err != nil {
		return err
	}
	c := redis.NewClient(options)
	defer func() { _ = c.Close() }()
	server := asynq.NewServer(to, asynq.Config{
		Concurrency: 1, Queues: map[string]int{queue: 1}, LogLevel: asynq.FatalLevel, TaskCheckInterval: 10 * time.Millisecond,
	})
	handle := func(ctx context.Context, task *asynq.Task) error {
		if c.Exists(ctx, "fixed").Val() == 0 {
			return errors.New("boom " + string(task.Payload()))
		}
		id, _ := asynq.GetTaskID(ctx)
		ran := c.RPush(ctx, "ran", fmt.Sprintf("%s %s %s", id, task.Payload(), task.Headers()["trace"])).Err()
		return errors.Join(ran, c.RPush(ctx, "done", task.Payload()).Err())
	}
	if err := server.Start(asynq.HandlerFunc(handle)); err != nil {
		return err
	}
	defer server.Shutdown()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
