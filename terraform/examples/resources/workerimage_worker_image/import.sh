# An image is imported by its name.
tofu import workerimage_worker_image.gpu talos-worker-gpu-nvidia-open-v1.13.7
