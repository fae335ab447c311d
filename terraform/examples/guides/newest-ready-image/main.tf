terraform {
  required_providers {
    workerimage = {
      source = "cozystack/workerimage"
    }
  }
}

data "workerimage_worker_image" "gpu" {
  schematic_id       = "gpu-nvidia"
  version_constraint = "~> 1.13.0"
  storage_class      = "replicated"
  ready_only         = true
  most_recent        = true
}

# With the Cozystack provider, this is a cozystack_kubernetes_nodes.
resource "terraform_data" "pool" {
  triggers_replace = jsonencode({
    apiVersion = "apps.cozystack.io/v1alpha1"
    kind       = "KubernetesNodes"
    metadata   = { namespace = "tenant-c", name = "tofu-newest" }
    spec = {
      cluster      = "tofu"
      version      = "v1.35"
      instanceType = "u1.medium"
      minReplicas  = 0
      maxReplicas  = 4
      storageClass = "replicated"
      diskSize     = "20Gi"
      osImage = {
        builtin = {
          schematicID = data.workerimage_worker_image.gpu.schematic_id
          version     = data.workerimage_worker_image.gpu.version
        }
      }
    }
  })

  provisioner "local-exec" {
    command = "echo '${self.triggers_replace}' | kubectl apply -f -"
  }

  provisioner "local-exec" {
    when    = destroy
    command = "echo '${self.triggers_replace}' | kubectl delete -f -"
  }
}
