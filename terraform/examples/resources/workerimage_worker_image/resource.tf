resource "workerimage_worker_image" "gpu" {
  schematic_id = "gpu-nvidia-open"
  version      = "v1.13.7"

  labels = {
    team = "platform"
  }
}
