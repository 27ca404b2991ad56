def orcheo_workflow()
    return g
