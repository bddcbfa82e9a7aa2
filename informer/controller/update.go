package controller

import (
	"context"
	"fmt"

	"k8s.io/client-go/util/retry"
)

// Update gets an object, changes it and writes it, and does all that again where somebody else has written it in between
// (409), up to five times, as client-go's retry.RetryOnConflict does. Change gets what the API server has now, never
// what a cache has, and reports whether there is something to write. Get and write are those of a typed client:
//
//	d, err := controller.Update(ctx, func(ctx context.Context) (*appsv1.Deployment, error) {
//		return client.Get(ctx, key.Name, metav1.GetOptions{})
//	}, setImage, func(ctx context.Context, d *appsv1.Deployment) (*appsv1.Deployment, error) {
//		return client.Update(ctx, d, metav1.UpdateOptions{})
//	})
//
// It returns the object as it was written, or as it was read where there was nothing to write.
func Update[T any](ctx context.Context, get func(context.Context) (T, error), change func(T) (bool, error), write func(context.Context, T) (T, error)) (T, error) {
	var obj T
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var err error
		if err = ctx.Err(); err != nil {
			return err
		}
		if obj, err = get(ctx); err != nil {
			return err
		}
		changed, err := change(obj)
		if err != nil || !changed {
			return err
		}
		obj, err = write(ctx, obj)
		return err
	})
	if err != nil {
		return obj, fmt.Errorf("update: %w", err)
	}
	return obj, nil
}
