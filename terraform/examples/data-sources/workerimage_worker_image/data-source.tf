# The newest 1.13 that is ready on the class that the pools use.
data "workerimage_worker_image" "newest" {
  schematic_id       = "gpu-nvidia"
  version_constraint = "~> 1.13.0"
  storage_class      = "replicated"
  ready_only         = true
  most_recent        = true
}

# This very image, once it is ready.
data "workerimage_worker_image" "pinned" {
  schematic_id = "edge"
  version      = "v1.13.6"
  wait_for     = "Ready"

  timeouts = {
    read = "30m"
  }
}

output "newest" {
  value = data.workerimage_worker_image.newest.name
}
