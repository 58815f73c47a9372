package main

import (
	"context"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
)

// operate carries out an operator's command and prints the object that it made
// or changed.
func operate[T any](
	ctx context.Context, t *terminal, cfg config.Database, do func(context.Context, *app.Operator) (T, error),
) error {
	operator, err := app.OpenOperator(ctx, cfg)
	if err != nil {
		return err
	}
	defer operator.Close()
	object, err := do(ctx, operator)
	if err != nil {
		return err
	}
	return printJSON(t.stdout, object)
}
