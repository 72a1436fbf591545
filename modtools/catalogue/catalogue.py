"""shim"""
class Catalogue: pass
